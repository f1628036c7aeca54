// Package serve runs the small HTTP servers of the operator's tools: it owns where they
// listen, their limits and their end. It knows no host and no metric, and must never
// offer more than the handler that it is given. Called by cmd/verbena for the exporter
// and the page.
//
// Reading order: serve.go.
package serve
