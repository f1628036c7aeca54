// Package ring owns the buffers of links that move frames inside the process,
// and the bounded queue in which they wait: a run's buffer becomes, without a
// copy, what the other side receives. It has no lock; its user has.
//
// Read pool.go, then queue.go.
package ring
