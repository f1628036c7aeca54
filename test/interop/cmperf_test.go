//go:build linux

package interop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/test/interop/guest"
	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// TestPerfOverCM runs our bandwidth and latency programs with -R against
// perftest's, in both directions. UC is missing: perftest has none with -R.
func TestPerfOverCM(t *testing.T) {
	judge.Need(t, "rxe", "perftest")
	b := &bench{net: network(t)}
	b.program(t)
	g := b.net.Guest(1)
	for i, c := range []struct{ ours, theirs string }{
		{"write-bw -q 2", "ib_write_bw -q 2"},
		{"read-bw", "ib_read_bw"},
		{"send-bw", "ib_send_bw"},
		{"atomic-bw", "ib_atomic_bw"},
		{"write-lat", "ib_write_lat"},
		{"send-lat", "ib_send_lat"},
		{"send-bw -c UD -q 2", "ib_send_bw -c UD -q 2"},
		{"send-bw -c UD -b", "ib_send_bw -c UD -b"},
		{"send-lat -c UD", "ib_send_lat -c UD"},
	} {
		port := 19600 + 2*i
		t.Run(c.theirs+"/we serve", func(t *testing.T) {
			ctx := within(t, patience)
			p := b.start(ctx, t, fmt.Sprintf("perf %s -R -n 10 -p %d -d vrb_%s", c.ours, port, guest.Bridge))
			// Without TCP there is no port to look for: until it listens, theirs is
			// refused.
			theirs := fmt.Sprintf("%s -R -F -n 10 -p %d -d %s %s", c.theirs, port, guest.RxeDevice, guest.HostIP4)
			if err := g.Until(ctx, theirs); err != nil {
				t.Fatalf("theirs: %v\nours printed:\n%s", err, p.kill())
			}
			p.wait(t)
		})
		t.Run(c.theirs+"/they serve", func(t *testing.T) {
			ctx := within(t, patience)
			s, err := g.Background(ctx, fmt.Sprintf("%s -R -F -n 10 -p %d -d %s", c.theirs, port+1, guest.RxeDevice))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Kill()
			if err := g.Until(ctx, fmt.Sprintf("rdma resource show cm_id | grep -q 'state LISTEN.*:%d '", port+1)); err != nil {
				t.Fatal(err)
			}
			p := b.start(ctx, t, fmt.Sprintf("perf %s -R -n 10 -p %d -d vrb_%s %v", c.ours, port+1, guest.Bridge, g.IP4()))
			out := p.wait(t)
			r, err := s.Wait(ctx)
			if err == nil {
				err = r.Err()
			}
			if err != nil || !strings.Contains(out, "rdma_cm QPs\t : ON") {
				t.Errorf("theirs: %v\nours printed:\n%s", err, out)
			}
		})
	}
}
