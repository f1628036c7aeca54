package demo

import (
	"bytes"
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/verbs"
)

// The experiment shows what it says: by addresses alone all packets of a pair of
// hosts come to one queue, with the ports to several, by queue pair to all and
// none to the wrong one.
func TestQueues(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	rows, err := Queues(ctx, QueuesConfig{
		Client: netip.MustParseAddr("127.0.9.3"), Server: netip.MustParseAddr("127.0.9.4"), Port: 4791,
		Queues: 4, QPs: 16, Messages: 8, Out: &out,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	used := func(r *QueuesRow) (n int) {
		for _, q := range r.Queues {
			if q.SocketPackets > 0 {
				n++
			}
		}
		return n
	}
	for i := range rows {
		r := &rows[i]
		switch r.By {
		case verbs.SteerAddresses:
			if used(r) != 1 || r.Fullest() != 1 || r.Misdirected() == 0 {
				t.Errorf("by addresses: %d queues used, fullest %.2f, %d handed over", used(r), r.Fullest(), r.Misdirected())
			}
		case verbs.SteerPorts: // 16 ports in 4 queues
			if used(r) < 2 || r.Fullest() == 1 {
				t.Errorf("by ports: %d queues used, fullest %.2f", used(r), r.Fullest())
			}
		case verbs.SteerQPN:
			if used(r) != 4 || r.Misdirected() != 0 || r.Fullest() > 0.5 {
				t.Errorf("by QPN: %d queues used, fullest %.2f, %d handed over", used(r), r.Fullest(), r.Misdirected())
			}
		}
	}
	if len(rows) != 3 || !strings.Contains(out.String(), "verbena sim run rss-off") {
		t.Errorf("%d rows:\n%s", len(rows), out.String())
	}
}

func TestQueuesRefusals(t *testing.T) {
	for _, c := range []QueuesConfig{{Queues: 1, QPs: 1, Messages: 1}, {Queues: 65, QPs: 1, Messages: 1}, {Queues: 2, Messages: 1}, {Queues: 2, QPs: 1}} {
		if _, err := Queues(t.Context(), c); err == nil {
			t.Errorf("%+v", c)
		}
	}
}
