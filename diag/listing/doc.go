// Package listing prints snapshots of hosts in the layouts that operators and their
// scripts know: ibv_devices, ibv_devinfo, ibstat, rdma, show_gids, perfquery -x,
// cma_roce_mode, ethtool, mlnx_qos and dcb, in the versions of Debian 12 (rdma-core 44,
// iproute2 6.1), and the frame of verbena top.
//
// It owns layouts and nothing else: every function takes a [snapshot.Snapshot] and
// returns bytes. It must not read hosts, open files or ask the clock. What a snapshot
// does not know is left out, or printed as the original prints it. A command line that
// the original refuses gives an [Error] with its words and its exit status. Called by
// cmd/verbena.
//
// Reading order: failure.go, row.go (text and JSON of the rdma tool), rdma.go (its
// command line), rdmashow.go, rdmares.go, filter.go; devinfo.go, devattr.go, ibstat.go,
// words.go; gid.go, perfquery.go, ethtool.go, qos.go; top.go.
package listing
