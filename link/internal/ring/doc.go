// Package ring owns the buffers of links that move frames inside the process,
// and the bounded queue in which they wait: a run's buffer becomes, without a
// copy, what the other side receives. Pool and Queue have no lock; their user has. Gate is how a link without a
// file waits.
//
// Read pool.go, queue.go, gate.go.
package ring
