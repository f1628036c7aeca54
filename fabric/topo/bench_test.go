package topo

import (
	"runtime"
	"testing"
)

// Routes of k=36: 11,664 hosts, 1,620 switches. The table has 1,620 × 648
// entries of 4 bytes: 4.2 MB.
func BenchmarkRoutes(b *testing.B) {
	g, err := FatTree{K: 36, Rate: gig100}.Build()
	if err != nil {
		b.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var r *Routes
	for b.Loop() {
		if r, err = g.Routes(); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
	b.ReportMetric(float64(len(r.sets)), "sets")
	runtime.KeepAlive(r)
}

func BenchmarkBuild(b *testing.B) {
	for b.Loop() {
		if _, err := (FatTree{K: 36, Rate: gig100}).Build(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPorts(b *testing.B) {
	g, r := build(b, FatTree{K: 16, Rate: gig100})
	sw, hosts := g.Node("agg0"), int32(len(g.Endpoints))
	n := 0
	for i := int32(0); b.Loop(); i = (i*5 + 3) % hosts {
		n += len(r.Ports(sw, i))
	}
}
