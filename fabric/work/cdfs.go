package work

import (
	"fmt"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/topo/token"
)

// Distributions that comparisons of data-centre transports use, as in HPCC's
// traffic generator (SIGCOMM'19 HPCC §5.1): bytes and percent.
const (
	// WebSearch: SIGCOMM'10 DCTCP.
	webSearch = `0 0, 10000 15, 20000 20, 30000 30, 50000 40, 80000 53, 200000 60, 1000000 70, 2000000 80, 5000000 90,
		10000000 97, 30000000 100`
	// FbHdp: Hadoop at Facebook, SIGCOMM'15 Roy.
	fbHdp = `0 0, 100 1, 200 2, 300 5, 350 15, 400 20, 500 30, 600 40, 700 50, 1000 60, 2000 67, 7000 70, 30000 72, 50000 82,
		80000 87, 120000 90, 300000 95, 1000000 97.5, 2000000 99, 10000000 100`
	// AliStorage2019: distributed storage at Alibaba.
	aliStorage = `0 0, 4000 22.93, 8000 69.21, 16000 80.61, 32000 90.47, 64000 93.53, 128000 96.77, 256000 97.53, 2000000 100`
	// GoogleRPC2008: all RPC at Google before 2008. A third number n says that
	// the published table has n steps from the point before: equal in percent
	// and in 1/size.
	googleRPC = `0 0, 3 6.48826, 32 9.73239, 64 15.5271 5, 128 35.1573 6, 256 49.7901 8, 512 78.4921 11, 1024 86.32 14,
		2048 90.8862 18, 4096 93.4955 24, 8192 96.4309 31, 16384 98.4694 41, 32768 99.0402 53, 65536 99.3256 69,
		131072 99.7129 90, 262144 99.8453 118, 524288 99.9498 153, 15158197 100 199`
)

var cdfs = [...]struct{ name, points string }{
	{"WebSearch", webSearch},
	{"FbHdp", fbHdp},
	{"AliStorage2019", aliStorage},
	{"GoogleRPC2008", googleRPC},
}

// CDFNames returns the names that NamedCDF knows.
func CDFNames() []string {
	names := make([]string, len(cdfs))
	for i := range cdfs {
		names[i] = cdfs[i].name
	}
	return names
}

// NamedCDF returns a published distribution by its name, upper or lower case.
func NamedCDF(name string) (*CDF, error) {
	for _, d := range cdfs {
		if strings.EqualFold(d.name, name) {
			return parsePoints(d.name, d.points), nil
		}
	}
	return nil, fmt.Errorf("distribution %.40q is not known: there are %s", name, strings.Join(CDFNames(), ", "))
}

// parsePoints reads one of the lists above.
func parsePoints(name, list string) *CDF {
	c := &CDF{Name: name}
	for text := range strings.SplitSeq(list, ",") {
		f := strings.Fields(text)
		size, _ := token.Decimal(f[0], 0, maxSize)
		share, _ := token.Decimal(f[1], 10, whole)
		if len(f) == 3 {
			steps, _ := token.Decimal(f[2], 0, maxPoints)
			c.points = append(c.points, harmonic(c.points[len(c.points)-1], point{int64(size), share}, steps)...)
		}
		c.points = append(c.points, point{int64(size), share})
	}
	return c
}

// harmonic returns the n-1 points between a and b that are equally far from
// each other in share and in 1/size: size = a·b·n / (b·(n-i) + a·i).
func harmonic(a, b point, n uint64) []point {
	var out []point
	for i := uint64(1); i < n; i++ {
		num := uint64(a.size) * uint64(b.size) * n
		den := uint64(b.size)*(n-i) + uint64(a.size)*i
		out = append(out, point{int64((num + den/2) / den), a.share + (b.share-a.share)*i/n})
	}
	return out
}
