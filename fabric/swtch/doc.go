// Package swtch owns the shared-buffer switch: how a packet is classified and
// routed, whether the buffer takes it, where it waits, when it leaves, whether
// it is marked, and when a neighbour must stop.
//
//	Arrive ─ classify ─ route ─ admit ──▶ (latency) ──▶ queue ── Pull ─ schedule ─ mark ─▶
//	                              │                               │
//	                              └── XOFF at the ingress         └── XON at the ingress
//
// The buffer is one memory. Each ingress has for each priority group a reserved
// part, a share of the shared part up to a threshold, and headroom. A packet
// counts from Arrive (its last bit; in a cut-through switch its head) until it
// begins to leave. What a group holds fills the reserved part first, then the
// shared part, then, when the threshold has been passed, headroom; it is given
// back in the opposite order. The packet that passes the threshold is still in
// the shared part if that has room; what comes after it is in headroom. So
//
//	2 × rate × delay + 2 × MTU + (64 B + gap) + rate × response
//
// of headroom loses nothing: the two frames are the one that the switch has begun
// to send when it wants to send XOFF and the one that the neighbour has begun when
// XOFF takes effect. More is needed, by one MTU, where the shared part has no room
// for the frame that passes the threshold, and by a PFC frame for each other class
// that is stopped at the same instant or was let go on just before.
//
// Queues are FIFO for each egress and priority, as shared-buffer ASICs have
// them: no fairness between the ingresses of a queue beyond the order of arrival.
//
// A priority is a class of PFC, a queue and a scheduling class at once. An XOFF
// of a group stops all lossless priorities that are mapped to it.
//
// The package must never look at a packet's flow to decide anything, allocate
// for a packet, or keep a packet that it has handed on. It is called by the ports
// of fabric/port and composed by fabric.
//
// Read config.go, validate.go, swtch.go, classify.go, route.go, buffer.go, pfc.go,
// held.go, queue.go, memory.go, sched.go, ecn.go, line.go, watchdog.go, counters.go, probe.go,
// audit.go.
package swtch
