// Package remote hands a host's recording to a peer that asks, and fetches one: how the
// doctor looks at both ends at the same time.
//
// It owns the protocol, which is one GET: /snapshot?interval=10s, answered with a tar
// stream. It must never offer anything else, change the host, or trust what it fetches:
// that is bounded in time and bytes, and the recording's own checks are source's. It
// does not read hosts; the caller records. Called by cmd/verbena.
//
// Reading order: handler.go, fetch.go.
package remote
