// Package interop holds Verbena against implementations that we did not write: Linux' rdma_rxe in a QEMU guest,
// Debian's perftest and ibverbs-utils, Wireshark's dissectors. It has tests only; what it asks and what the judges
// answer is the proof behind the README's table of what interoperates with what.
//
//	host side of the network                      guest 1 (package guest)
//	our programs as separate processes, uid 65534 ── ibv_*_pingpong, ib_*_bw, ib_*_lat over rdma_rxe
//	package verbs in the test's own process       ── the same
//
// One network with one guest is booted for all tests of the package, at the first that needs it. A boot is tried
// again; a verdict never is. Each test names its judges by package judge, so that a machine without them skips by
// name.
//
// Environment:
//
//	VERBENA_INTEROP=full      the full matrices instead of the covering arrays
//	VERBENA_INTEROP_SEED=n    the seed of the covering arrays, data and losses
//	VERBENA_NET=name          use the network that "guestnet up" keeps under that name: no boot
//
// Read net_test.go (the shared network), host_test.go (our side in this process), cover_test.go (covering arrays),
// then the tests.
package interop
