// Package faultplan shows how to test a program against an RNIC that fails: three
// plans, one program, what the program sees, and the counter that tells.
//
//   - disconnects.yaml: the network goes away at random, for a while, and for good;
//   - completions.yaml: calls fail and completions are in error;
//   - impairment.yaml: a bad network: loss, duplicates, late and marked packets.
//
// The program is copier.go: it copies blocks to another host and connects anew
// when its queue pair dies. The same plans go to any program by
// VERBENA_FAULTS=FILE, and to `verbena perf` by --fault FILE.
//
//	go test ./examples/faultplan
package faultplan
