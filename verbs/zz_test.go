package verbs_test
import ("testing";"fmt";"net/netip";"encoding/json"
"github.com/verbena-rdma/verbena/verbs";"github.com/verbena-rdma/verbena/ib")
func BenchmarkZZ(b *testing.B) {
	for _, c := range []struct{ shards, qps int }{{1, 1}, {32, 4000}} {
		dev, err := verbs.Open(verbs.Config{Addr: netip.MustParseAddr("127.0.0.173"), Port: 14818, Shards: c.shards, Control: verbs.ControlOn})
		if err != nil { b.Fatal(err) }
			pd := dev.AllocPD()
			cq, err := dev.CreateCQ(verbs.CQConfig{})
			for range c.qps { pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: cq, RecvCQ: cq, Cap: ib.QPCap{MaxSendWR: 1, MaxRecvWR: 1}}) }
		b.Run(fmt.Sprintf("snap,shards=%d,qps=%d", c.shards, c.qps), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() { dev.Snapshot(false) }
		})
		b.Run(fmt.Sprintf("json,shards=%d,qps=%d", c.shards, c.qps), func(b *testing.B) {
			s := dev.Snapshot(false)
			b.ReportAllocs()
			var n []byte
			for b.Loop() { n,_=json.Marshal(&s) }
			b.ReportMetric(float64(len(n)),"bytes")
		})
		b.Run(fmt.Sprintf("unjson,shards=%d,qps=%d", c.shards, c.qps), func(b *testing.B) {
			s := dev.Snapshot(false)
			b.ReportAllocs()
			n,_:=json.Marshal(&s)
			for b.Loop() { json.Unmarshal(n,&s) }
		})
		dev.Close()
	}
}
