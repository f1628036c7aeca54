// Package fabric composes a simulated network out of a scenario: hosts whose
// NICs are adapters of package rnic, switches, links, traffic and faults, in
// virtual time. It runs them, watches them while they run, and returns what
// became of them as a result.Run.
//
//	scenario ─▶ New ─▶ Run ─▶ Advance … ─▶ Result ─▶ explain, report
//
//	sim.Sim ── events ──▶ port.Port ◀─▶ swtch.Switch
//	                          ▲
//	                          └───────▶ host.NIC ─▶ rnic.Adapter
//
// A run has one thread and no wall clock: who calls Advance decides how much of
// it happens before the next look, and may stop at any moment. The same
// scenario gives the same digest on every machine.
//
// Read run.go, build.go, names.go, flows.go, base.go, lane.go, faults.go, watch.go,
// sample.go, collect.go, capture.go.
package fabric
