// Package export turns a snapshot of a host into Prometheus metrics: names without
// vendors and with units, the driver's own name as the label raw.
//
// It owns names, help texts and labels, and the bounds that keep a strange host from
// becoming a million series. It must not read files (it is given a function that
// returns a snapshot), judge values or change anything. A counter that could not be
// read has no sample; how many could not is a metric of its own. Called by
// cmd/verbena.
//
//	snapshot ──▶ Collector.Append ──▶ scrape ─┬─ port.go    states, counters/, hw_counters ─┬─▶ page ──▶ text
//	                                          ├─ netdev.go  PFC, discards, PCIe, FEC        │
//	                                          ├─ device.go  objects, QPs, shards            │
//	                                          └─ compat.go  node_exporter's names, on demand┘
//
// The text is written straight into the page, whose memory stays from scrape to scrape:
// a metric that is first an object costs ten times as much. Prometheus' own parser, writer
// and linter judge the text in the tests.
//
// Reading order: collector.go, scrape.go, desc.go, page.go, then the files above,
// handler.go.
package export
