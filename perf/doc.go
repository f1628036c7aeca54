// Package perf measures: the tests of perftest (bandwidth and latency of WRITE,
// READ, SEND and ATOMIC) and the pingpong of libibverbs' examples, as a library.
// The other end may be this package or Debian's programs, in either role.
//
// [Run] is a whole test: it finds the peer over TCP, opens the device, swaps
// addresses (perf/handshake), runs the loops (perf/run) and prints (perf/report).
// [Pingpong] is the same for the examples. Both return an error of one line
// for whatever a user or a peer does wrong.
//
//	config.go   what may be asked for, the defaults of perftest, and refusals
//	wire.go     the TCP connection, watched while a loop runs
//	device.go   which device and which GID
//	rig.go      memory, queues, queue pairs of one test
//	measure.go  the order of steps
//	verify.go   data patterns, compared where both ends are ours
//	status.go   completion statuses in words, with likely causes
//	pingpong.go
//
// # Verification
//
// Between two ends of this package the data is compared: the sender's buffer
// holds a pattern that depends on a queue pair's number and the place, and the
// receiver checks all that the last size must have left. Ends recognise each
// other in the version block of the handshake, behind the zero at which every
// other reader stops; against perftest nothing changes on the wire.
package perf
