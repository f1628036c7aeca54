package work

import (
	"io"
	"math/big"
	"math/bits"
	"sort"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo/token"
)

// CDF is a distribution of flow sizes: a share of flows up to each of some
// sizes, and a straight line between them. It is not changed once it is made.
type CDF struct {
	Name   string
	points []point
}

// point says that a share of flows, in units of 10^-12, has at most so many
// bytes.
type point struct {
	size  int64
	share uint64
}

const (
	whole     = 1_000_000_000_000
	drawBits  = 20      // a draw has so many bits more than a share
	maxPoints = 1 << 16 // of a file
	maxSize   = 1 << 40 // bytes
	percent   = whole / 1e2
)

// ReadCDF reads lines "size percent" as of HPCC's traffic generator, up to 100.
// A file that ends with 1 gives shares instead, as those of ns3-datacenter. Both
// columns ascend; sizes may have decimals, which are rounded. name is the
// file's, for errors and for CDF.Name.
func ReadCDF(r io.Reader, name string) (*CDF, error) {
	in := token.NewReader(r, name)
	c := &CDF{Name: name}
	for {
		f, ok := in.Next()
		if !ok {
			break
		}
		size, ok := token.Decimal(f.Text, 0, maxSize)
		if !ok {
			return nil, in.Fail(f, "size %q is not a number of bytes up to %d", f.Text, int64(maxSize))
		}
		at := f
		if f, ok = in.Next(); !ok || f.New {
			if err := in.Err(); err != nil {
				return nil, err
			}
			return nil, in.Fail(at, "size %s has no percent beside it", at.Text)
		}
		share, ok := token.Decimal(f.Text, 10, whole)
		if !ok {
			return nil, in.Fail(f, "percent %q is not a number from 0 to 100", f.Text)
		}
		if n := len(c.points); n > 0 {
			last := c.points[n-1]
			if int64(size) < last.size {
				return nil, in.Fail(at, "size %s is less than the one above", at.Text)
			}
			if share < last.share {
				return nil, in.Fail(f, "percent %s is less than the one above", f.Text)
			}
		}
		if len(c.points) == maxPoints {
			return nil, in.Fail(at, "more than %d points", maxPoints)
		}
		c.points = append(c.points, point{int64(size), share})
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if len(c.points) == 0 {
		return nil, in.FailFile("is empty: lines of size and percent are wanted")
	}
	switch last := &c.points[len(c.points)-1]; {
	case last.share == 1*percent:
		for i := range c.points {
			c.points[i].share *= 100
		}
	case last.share != whole:
		return nil, in.FailEnd("the last percent is not 100")
	}
	if c.points[len(c.points)-1].size == 0 {
		return nil, in.FailEnd("all sizes are 0")
	}
	return c, nil
}

// At returns the size at a quantile, whose unit is 10^-12 / 2^20: below
// whole<<drawBits.
func (c *CDF) at(u uint64) int64 {
	i := sort.Search(len(c.points), func(i int) bool { return c.points[i].share<<drawBits > u })
	if i == len(c.points) {
		i--
	}
	p := c.points[i]
	size := p.size
	if i > 0 {
		q := c.points[i-1]
		d := (p.share - q.share) << drawBits
		hi, lo := bits.Mul64(uint64(p.size-q.size), u-q.share<<drawBits)
		lo, carry := bits.Add64(lo, d/2, 0)
		x, _ := bits.Div64(hi+carry, lo, d)
		size = q.size + int64(x)
	}
	return max(1, size)
}

// Draw returns a size at random, at least 1.
func (c *CDF) Draw(r *sim.Rand) int64 { return c.at(r.N(whole << drawBits)) }

// Quantile returns the size that a share of flows, in units of 10^-6, does not
// exceed.
func (c *CDF) Quantile(ppm int) int64 {
	return c.at(min(uint64(max(0, ppm))*(whole/1_000_000)<<drawBits, whole<<drawBits-1))
}

// mean returns the mean size in units of 1/(2·whole): over a straight piece it
// is half the sum of its ends.
func (c *CDF) mean() *big.Int {
	sum := new(big.Int)
	last := point{c.points[0].size, 0} // what is below the first point is there
	for _, p := range c.points {
		piece := new(big.Int).SetUint64(p.share - last.share)
		sum.Add(sum, piece.Mul(piece, big.NewInt(last.size+p.size)))
		last = p
	}
	return sum
}

// Mean returns the mean size in bytes; for output only.
func (c *CDF) Mean() float64 {
	f, _ := new(big.Rat).SetFrac(c.mean(), big.NewInt(2*whole)).Float64()
	return f
}
