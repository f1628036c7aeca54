// Package truth owns the proof that the simulator is right: tests whose expected
// numbers are formulas of package theory, or figures that other simulators have
// published. docs/truth.md has them row by row, written down before the run;
// the tests bear the names of the rows.
//
// It has no code of its own, nobody imports it, and it must never take an
// expected number from a run of ours, nor change a parameter to meet one.
//
//	A exact     base_test.go      completion times on an idle fabric
//	            incast_test.go    N senders, PFC only
//	            queueing_test.go  M/D/1, N*D/D/1
//	            pause_test.go     quanta, refresh
//	            headroom_test.go  no drop with it, drops just below
//	            share_test.go     max-min, weights, port-fair
//	B DCQCN     fixedpoint_test.go
//	C others    threshold_test.go, published_test.go
//
// rig_test.go runs scenarios of testdata with changes; path_test.go lays paths.
package truth
