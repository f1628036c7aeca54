package verbs_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// BenchmarkSnapshot is what a look at a device costs, to and from JSON not included
// but for the encoding: without lists as an exporter asks, and with them.
func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{1, 4000, 10000} {
		d, err := verbs.Open(verbs.Config{Addr: netip.MustParseAddr("127.0.0.94"), Port: 47913, Control: verbs.ControlOff})
		if err != nil {
			b.Fatal(err)
		}
		pd := d.AllocPD()
		cq, err := d.CreateCQ(verbs.CQConfig{})
		if err != nil {
			b.Fatal(err)
		}
		for range n {
			if _, err := pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: cq, RecvCQ: cq, Cap: ib.QPCap{MaxSendWR: 1, MaxRecvWR: 1}}); err != nil {
				b.Fatal(err)
			}
		}
		for _, resources := range []bool{false, true} {
			b.Run(fmt.Sprintf("qps=%d,lists=%v", n, resources), func(b *testing.B) {
				for b.Loop() {
					if _, err := json.Marshal(d.Snapshot(resources)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		d.Close()
	}
}
