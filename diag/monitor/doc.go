// Package monitor is the live page of an operator: plots of throughput, pause, ECN,
// CNPs, retransmissions and order by device and priority, and the doctor's findings
// beside them, of this host and of recorded ones.
//
// It owns the rates (rate.go), ten minutes of them per host (ring.go), the watching of a
// host (watch.go) and the page with its two JSON answers (handler.go, web/). It must not
// read files or sockets (hosts are given as functions), judge (the doctor does) or offer
// anything that changes a host. Memory is bounded whatever a host has and however many
// look: everybody reads the same ring. Called by cmd/verbena.
//
//	Host.Look ──1 s──▶ rates ──▶ ring ──┐
//	Host.Full ─10 s──▶ doctor.Examine ──┴─▶ /api/data ──▶ web/app.js
//
// web/uplot is uPlot 1.6.32 as its authors publish it, with its licence.
//
// Reading order: monitor.go, watch.go, rate.go, ring.go, handler.go, web/app.js, web/plot.js, web/findings.js.
package monitor
