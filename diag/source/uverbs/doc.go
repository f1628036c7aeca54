// Package uverbs asks a kernel device for the attributes that sysfs and netlink lack:
// what ibv_query_device_ex and ibv_query_port answer.
//
// It owns the layout of those commands (uapi rdma/ib_user_verbs.h). It opens the
// character device, makes the context that any query needs, asks, and closes it, which
// gives the context back; it makes no other object. Drivers that want private data with
// the context refuse, and that is an answer. Called by diag/source.
//
// Reading order: layout.go, query_linux.go.
package uverbs
