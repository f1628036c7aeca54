package doctor_test

import (
	"testing"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Two causes at a time are both found, whatever they are, and neither is lost behind
// symptoms: each is among the first findings, a failure before a warning of another kind.
func TestTwoCauses(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	causes := []struct {
		rule string
		set  func(*world)
	}{
		{"L04", func(w *world) { w.both(func(n *snapshot.Netdev) { n.DCB.Trust = snapshot.Known("pcp") }) }},
		{"L10", func(w *world) {
			w.peerAfter.Devices[0].Ports[0].ActiveMTU, w.peerNet().MTU = snapshot.Known(1024), snapshot.Known(1500)
		}},
		{"L03", func(w *world) {
			w.peerNet().DCB.PFC = snapshot.Known(snapshot.PFC{Cap: 8, Enabled: [8]bool{4: true}})
		}},
		{"L14", func(w *world) { w.app().GIDIndex = snapshot.Known(2) }},
		{"L05", func(w *world) {
			w.app().TrafficClass = snapshot.Known(0)
			for _, d := range []*snapshot.Device{w.dev(), &w.before.Devices[0]} {
				q, _ := d.QPs.Get()
				q[0].TrafficClass = snapshot.Known(0)
			}
		}},
		{"A01", func(w *world) {
			w.app().Memlock = snapshot.Known(int64(64 << 10))
			w.printed(snapshot.LogEvent{Kind: "reg_mr", Errno: 12})
		}},
		{"C17", func(w *world) { w.hw("rnr_nak_retry_err", 1000); w.hw("req_rnr_retries_exceeded", 2) }},
		{"C21", func(w *world) { w.hw("req_remote_access_errors", 3) }},
		{"P08", func(w *world) {
			for _, h := range []*snapshot.Snapshot{w.before, w.after} {
				h.Devices[0].PCI.LinkWidth = snapshot.Known(4)
			}
		}},
		{"P05", func(w *world) { w.eth("rx_pcs_symbol_err_phy", 500) }},
		{"C03", func(w *world) { w.eth("tx_prio3_pause_duration", 9.9e6) }},
		{"C01", func(w *world) { w.eth("rx_prio3_pause", 50_000) }},
		{"N04", func(w *world) {
			for _, h := range []*snapshot.Snapshot{w.before, w.after} {
				h.Netdevs[1].Addresses = []snapshot.Address{{Prefix: "10.0.0.77/24"}}
			}
		}},
		{"L18", func(w *world) { w.port().CMRoCEMode = snapshot.Known("IB/RoCE v1") }},
		{"A08", func(w *world) { w.setQPs("INIT", "INIT") }},
	}
	for i := range causes {
		for _, step := range []int{1, 4} { // each with four others
			a, b := causes[i], causes[(i+step)%len(causes)]
			w := newWorld()
			a.set(w)
			b.set(w)
			r := doctor.Examine(w.input(), rules)
			for _, c := range []string{a.rule, b.rule} {
				if at := position(r.Findings, []string{c}); at < 0 || at > 3 {
					t.Errorf("%s and %s: %s is at %d of %s", a.rule, b.rule, c, at, list(r.Findings))
				}
			}
		}
	}
}
