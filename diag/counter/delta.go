package counter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// limits are the greatest values of counters of a port that stop there and do not begin
// again (IBA 16.1.3.5, by the widths of its table), under sysfs' names. Where a device
// has wider ones, such a value is a rare chance.
var limits = map[string]uint64{
	"symbol_error": 1<<16 - 1, "link_error_recovery": 1<<8 - 1, "link_downed": 1<<8 - 1, "port_rcv_errors": 1<<16 - 1,
	"port_rcv_remote_physical_errors": 1<<16 - 1, "port_rcv_switch_relay_errors": 1<<16 - 1, "port_xmit_discards": 1<<16 - 1,
	"port_xmit_constraint_errors": 1<<8 - 1, "port_rcv_constraint_errors": 1<<8 - 1, "local_link_integrity_errors": 1<<4 - 1,
	"excessive_buffer_overrun_errors": 1<<4 - 1, "VL15_dropped": 1<<16 - 1, "port_xmit_data": 1<<32 - 1, "port_rcv_data": 1<<32 - 1,
	"port_xmit_packets": 1<<32 - 1, "port_rcv_packets": 1<<32 - 1, "port_xmit_wait": 1<<32 - 1,
}

// PortDelta is how much a counter of counters/ of a port rose. These do not wrap: one
// that fell was reset, and of one that stands at its limit nobody knows whether it rose.
func PortDelta(name string, before, after snapshot.Value[uint64]) snapshot.Value[uint64] {
	b, ok := before.Get()
	a, ok2 := after.Get()
	if !ok || !ok2 {
		return snapshot.Delta(before, after) // says why not
	}
	if limit := limits[name]; limit != 0 && a == b && a == limit {
		return snapshot.Unreadable[uint64](fmt.Sprintf("it stands at %d, the most that it can count", limit))
	}
	if a < b {
		return snapshot.Unreadable[uint64]("the counter fell: it was reset, or the device is another one")
	}
	return snapshot.Known(a - b)
}

// IsLevel reports whether a hardware counter goes up and down: how many objects there
// are now, as bnxt_re and our own devices count them.
func IsLevel(raw string) bool { return strings.HasPrefix(raw, "active_") }

// Fell returns the first of a set of counters that is lower than before and did not
// wrap; empty if there is none. Then the set was reset: what looks like a wrapped
// counter in it is none.
func Fell(before, after snapshot.Counters) string {
	was := make(map[string]snapshot.Value[uint64], len(before))
	for _, c := range before {
		was[c.Name] = c.Value
	}
	for _, c := range after {
		b, ok := was[c.Name]
		if ok && b.IsKnown() && c.Value.IsKnown() && !IsLevel(c.Name) && !snapshot.Delta(b, c.Value).IsKnown() {
			return c.Name
		}
	}
	return ""
}

// Delta is how much a counter of a port rose, by its canonical name: between sets that
// have the same of it, and were not reset.
func Delta(f Family, before, after snapshot.Counters, name Name) snapshot.Value[uint64] {
	was, now := Get(f, before, name), Get(f, after, name)
	b, ok := was.Get()
	a, ok2 := now.Get()
	if !ok || !ok2 {
		return snapshot.Delta(was, now)
	}
	if raw := Raw(f, after, name); !slices.Equal(Raw(f, before, name), raw) {
		return snapshot.Unreadable[uint64]("the snapshots do not have the same of " + strings.Join(raw, ", "))
	}
	if a < b {
		if fell := Fell(before, after); fell != "" {
			return snapshot.Unreadable[uint64]("the counters were reset: " + fell + " fell, too")
		}
	}
	return snapshot.Delta(was, now)
}
