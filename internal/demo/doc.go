// Package demo is the two-minute introduction: two software RNICs on this host
// talk RoCEv2 over UDP, beside a TCP socket that does the same work; then the
// same transfer loses packets and arrives intact; then the same RNICs are in a
// simulated fabric.
//
// It is a program in the form of a library, so that tests can run it. It owns
// no measuring method of general use; package perf does.
//
// Read demo.go (the acts in order), pair.go (two devices and their queue
// pairs), rdma.go and tcp.go (the same four measurements each), loss.go (the
// lossy transfer), fabric.go (the simulated one), table.go.
package demo
