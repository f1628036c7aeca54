//go:build linux

package probe

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/verbena-rdma/verbena/diag/probe"
	"github.com/verbena-rdma/verbena/verbs"
)

// An RNIC of ours at the far end drops every probe, as a packet to a queue
// pair that there is not, and nothing else about it is wrong for it: not the
// ICRC, not a length. It answers none.
func TestRNICDropsProbes(t *testing.T) {
	t.Parallel()
	x := newRig(t)
	var dev *verbs.Device
	var err error
	x.b.Do(func() { dev, err = verbs.Open(verbs.Config{Addr: netip.MustParseAddr(b4)}) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	x.listen()
	doc, exit := x.probe(b4)
	check(t, &fault{look: func(r *probe.Result) error {
		if r.Forward.HeardBy != "capture" || r.Forward.Seen != 100 {
			return fmt.Errorf("forward heard by %q, %d", r.Forward.HeardBy, r.Forward.Seen)
		}
		return nil
	}}, doc, exit)
	s := dev.Stats()
	if got := s.Get("drop_management"); got < 100 {
		t.Errorf("the RNIC has dropped %d probes", got)
	}
	for _, name := range []string{"drop_short", "drop_version", "drop_bad_opcode", "drop_bad_pad", "drop_bad_length", "drop_icrc", "drop_address", "drop_no_qp"} {
		if got := s.Get(name); got != 0 {
			t.Errorf("%s is %d", name, got)
		}
	}
	if c := dev.LinkCounters(); c.SendCalls != 0 {
		t.Errorf("the RNIC has answered: %+v", c)
	}
}
