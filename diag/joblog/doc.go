// Package joblog finds errors of RDMA in what programs print: NCCL, UCX, libfabric,
// Gloo, MVAPICH, perftest and programs that use libibverbs directly.
//
// It owns the patterns and nothing else: text in, events out, no I/O, no opinion on
// causes. Lines that it does not know are skipped; work is linear in the length of the
// log and events are bounded. Called by diag/read.
package joblog
