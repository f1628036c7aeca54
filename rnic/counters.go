package rnic

import "github.com/verbena-rdma/verbena/transport"

type counters struct{}

// Stat is one counter.
type Stat struct {
	Name  string
	Value uint64
}

// Stats is a list of counters in a fixed order under stable names.
type Stats []Stat

// Get returns the value of a counter; 0 if there is none of that name.
func (s Stats) Get(name string) uint64 {
	for i := range s {
		if s[i].Name == name {
			return s[i].Value
		}
	}
	return 0
}

// Stats returns all counters. Owner.
func (a *Adapter) Stats() Stats { return nil }

// Drop implements transport.Sink.
func (s *sink) Drop(d transport.Drop) { s.a.tcount.Drops[d]++ }
