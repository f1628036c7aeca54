// Package snapshot is the model of a host as the operator's tools see it: its
// RDMA devices with ports, GIDs, counters and resources, its network interfaces
// with statistics and data-center bridging, and what else decides whether RDMA
// works (routes, neighbours, sysctl, limits, huge pages, firewall).
//
// The model has no I/O and no opinion: package diag/read fills it, listings print
// it, the doctor judges it. It marshals to JSON and back without loss.
//
// A reading is a [Value]: known, not readable with the reason, or absent because
// nobody has it or asked. The three are never mixed: a counter that cannot be read
// is not zero.
//
// Reading order: value.go, snapshot.go (the host), device.go (RDMA), netdev.go,
// host.go (the rest), app.go, swtch.go, window.go (two snapshots and what changed).
package snapshot
