// Package rtnl asks the kernel for interfaces, addresses, routes, policy rules and
// neighbours, over NETLINK_ROUTE as the ip tool does.
//
// It owns the few attributes of those messages (uapi linux/rtnetlink.h) that matter
// for RDMA and has no message that changes anything. Called by diag/source.
//
// Reading order: client.go, link.go, route.go.
package rtnl
