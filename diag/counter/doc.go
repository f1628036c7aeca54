// Package counter gives one name to what every driver counts under a name of its own,
// so that rules and metrics need not know vendors: ecn_marked_rx, cnp_tx,
// nak_seq_rx, ack_timeout and so on, and PFC by priority and direction.
//
// It owns the tables of drivers' names (mlx5, bnxt_re, irdma, rdma_rxe, our own
// devices) and must not judge values. A counter that no table has keeps its name and
// has no canonical one. Called by the doctor, the exporter, listings and the page.
//
// Reading order: counter.go, tables.go, pfc.go.
package counter
