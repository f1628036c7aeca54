package main
import ("testing";"fmt";"strings")
func BenchmarkZZ(b *testing.B) {
	for _, c := range []struct{ devices, shards, qps int }{{1, 1, 1}, {4, 1, 100}, {1, 32, 4000}} {
		b.Run(fmt.Sprintf("devices=%d,shards=%d,qps=%d", c.devices, c.shards, c.qps), func(b *testing.B) {
			program(b, "ready", holderProgram, fmt.Sprint(c.devices), fmt.Sprint(c.shards), fmt.Sprint(c.qps))
	url, stop := servedAt(b, "exporter", "--listen", "127.0.0.1:0")
	defer stop()
	url = strings.TrimSuffix(url, "/metrics") + "/metrics"
	b.ReportAllocs()
	for b.Loop() { body(b, url) }
	})}
}
