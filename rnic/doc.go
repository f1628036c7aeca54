// Package rnic owns the adapter: tables of queue pairs, completion queues,
// regions and address handles, and the roads of a packet in and out.
//
// It has no clock, lock, goroutine or I/O.
package rnic
