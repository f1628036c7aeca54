package verbs_test

import (
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/diag/control"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// What the list of 10,000 queue pairs takes is bounded at both ends of the control socket:
// all that is allocated for one answer, garbage included, so that the peak is less.
func TestControlMemoryOf10000QueuePairs(t *testing.T) {
	const qps, limit = 10_000, 100 << 20
	d, err := verbs.Open(verbs.Config{Addr: netip.MustParseAddr("127.0.0.95"), Port: 47915, Control: verbs.ControlOff})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	pd := d.AllocPD()
	cq, err := d.CreateCQ(verbs.CQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for range qps {
		if _, err := pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: cq, RecvCQ: cq, Cap: ib.QPCap{MaxSendWR: 1, MaxRecvWR: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := control.Listen(func(w control.Want) snapshot.Device { return d.Snapshot(w.Resources) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	allocated := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	length := int64(0)
	room := make([]byte, 1<<20)
	server := allocated(func() {
		c, err := net.Dial("unix", s.Name())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, `{"version":1,"resources":true}`+"\n"); err != nil {
			t.Fatal(err)
		}
		for err = nil; err == nil; {
			var n int
			n, err = c.Read(room)
			length += int64(n)
		}
	})
	found := 0
	both := allocated(func() {
		list, err := control.Devices(control.Query{Resources: true, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if strings.HasPrefix(list[i].Name, d.Name()) && len(list[i].QPs.Or(nil)) == qps {
				found++
			}
		}
	})
	if length < 1<<20 || found == 0 {
		t.Fatalf("the answer has %d bytes, and %d devices with %d queue pairs", length, found, qps)
	}
	client := both - min(server, both)
	t.Logf("the answer has %.1f MB; %.1f MB are allocated to make it, %.1f MB to read it", float64(length)/1e6, float64(server)/1e6, float64(client)/1e6)
	if server > limit || client > limit {
		t.Errorf("%d bytes are allocated to make the answer and %d to read it, the limit is %d", server, client, limit)
	}
}
