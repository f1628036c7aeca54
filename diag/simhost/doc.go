// Package simhost shows hosts and switches of the simulator as snapshots, so that the
// doctor and the listings work on them as on real ones: a window from the beginning of
// a run, with all counters at zero, to its end, in virtual time.
//
// It owns the mapping from a run's result and scenario to the words of package
// snapshot: counters of NICs under mlx5's names (rx_prio3_pause, np_cnp_sent), PFC and
// DSCP as dcb has them, switches with PFC counters, watchdog and ECN profiles. It must
// not judge, and does not invent what the simulator does not know: firmware, PCI,
// limits and files are absent. Called by cmd/verbena (sim run --snapshots).
//
// Reading order: record.go, host.go, switch.go.
package simhost
