// Package pair is a link in memory with two ends, for tests: what one end
// commits, the other receives, in order, byte for byte.
//
// Nothing is lost unless the queue of Config.Depth pieces is full, and nothing
// depends on time: a test that drives both ends from one goroutine sees the
// same calls every time. Wait blocks on a channel and a timer, so it works
// under testing/synctest.
//
// Each buffer travels without a copy: the run's buffer becomes the receiver's.
package pair
