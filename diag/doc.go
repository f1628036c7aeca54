// Package diag and the packages under it are the operator's tools: they read a
// host, show it in the layouts everybody knows, and say what is wrong with it.
//
// Everything goes through one model:
//
//	live host ─┐                                 ┌─ listing   layouts of ibv_devinfo, rdma, perfquery, …
//	recording ─┼─ source ── read ── snapshot ────┼─ doctor    rules with evidence
//	own device ┘  (control)                      ├─ export    Prometheus metrics
//	simulation ───────────────────────────────── ┴─ monitor   web page
//
// snapshot is the model and has no I/O. source answers what a reader asks, from a
// live host or a recorded directory; a recording is what a reader asked for and was
// told. read turns answers into a snapshot. Nothing here changes a host.
package diag
