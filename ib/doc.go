// Package ib owns the vocabulary of the InfiniBand specification as Verbena
// uses it: numbers (QPN, PSN, keys), addresses (GID), the states of a queue
// pair, work requests and work completions.
//
// It has no behaviour beyond arithmetic and names, imports nothing of Verbena
// and is imported by everything. The formats of packets are in package wire.
//
// Numeric values equal those of libibverbs where that interface has one, so
// that a C application and a Go application mean the same by a number.
//
// Read number.go (numbers and their arithmetic), gid.go, qp.go (types, states
// and attributes of a queue pair), srq.go (the
// attributes of a shared receive queue), wr.go (what an application posts), wc.go
// (what it gets back), event.go.
package ib
