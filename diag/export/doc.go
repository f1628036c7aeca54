// Package export turns a snapshot of a host into Prometheus metrics: names without
// vendors and with units, the driver's own name as the label raw.
//
// It owns names, help texts and labels, and the bounds that keep a strange host from
// becoming a million series. It must not read files (it is given a function that
// returns a snapshot), judge values or change anything. A counter that could not be
// read has no sample; how many could not is a metric of its own. Called by
// cmd/verbena.
//
//	snapshot ──▶ Collector.Collect ──▶ scrape ─┬─ port.go    states, counters/, hw_counters
//	                                           ├─ netdev.go  PFC, discards, PCIe, FEC
//	                                           ├─ device.go  objects, QPs, shards
//	                                           └─ compat.go  node_exporter's names, on demand
//
// Reading order: collector.go, scrape.go, desc.go, then the files above, handler.go.
package export
