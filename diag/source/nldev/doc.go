// Package nldev asks the kernel's RDMA subsystem what it has: devices, ports,
// objects, counters, over NETLINK_RDMA as the rdma tool does.
//
// It owns the layout of those messages (uapi rdma/rdma_netlink.h) and the words that
// the rdma tool prints for their numbers. It only asks; it has no message that
// changes anything. Answers are bounded by the kernel; a message that is cut or has an
// attribute of the wrong size is an error that names the query. Called by diag/source.
//
// Reading order: client.go, attr.go, device.go, resource.go, bound.go, words.go.
package nldev
