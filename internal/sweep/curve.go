package sweep

import (
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/metric"
)

// curve is one metric over one axis, all other axes at one value each.
type curve struct {
	metric string
	axis   int
	unit   metric.Unit // of x
	others string      // values of the other axes: "alpha=1/8"; "" if there are none
	points []*Point    // in order of x
	x      []float64
	y      []Cell
	knee   int // index of the bend; -1: none
}

// abscissa is the axis over which curves are looked at: of those whose values
// are numbers the one with most; -1 if there is none.
func (r *Result) abscissa() int {
	best := -1
	for i := range r.Axes {
		if _, _, ok := r.Axes[i].numbers(); ok && (best < 0 || len(r.Axes[i].Values) > len(r.Axes[best].Values)) {
			best = i
		}
	}
	return best
}

// curves returns those of a metric, in the order of the grid. Points without a
// value are left out.
func (r *Result) curves(name string) []*curve {
	axis := r.abscissa()
	if axis < 0 {
		return nil
	}
	xs, unit, _ := r.Axes[axis].numbers()
	var out []*curve
	for _, p := range r.Points {
		others := r.others(p, axis)
		i := slices.IndexFunc(out, func(c *curve) bool { return c.others == others })
		if i < 0 {
			i = len(out)
			out = append(out, &curve{metric: name, axis: axis, unit: unit, others: others})
		}
		if mid, _, _ := p.Cell(name); mid.Err == "" {
			out[i].add(p, xs[slices.Index(r.Axes[axis].Values, p.Values[axis])], mid)
		}
	}
	for _, c := range out {
		y := make([]float64, len(c.y))
		for i := range c.y {
			y[i] = c.y[i].V
		}
		c.knee = -1
		if k, ok := Knee(c.x, y); ok {
			c.knee = k
		}
	}
	return out
}

// add keeps x ascending.
func (c *curve) add(p *Point, x float64, y Cell) {
	i := len(c.x)
	for i > 0 && c.x[i-1] > x {
		i--
	}
	c.points, c.x, c.y = slices.Insert(c.points, i, p), slices.Insert(c.x, i, x), slices.Insert(c.y, i, y)
}

// others writes the values of all axes but one.
func (r *Result) others(p *Point, axis int) string {
	var parts []string
	for i := range r.Axes {
		if i != axis {
			parts = append(parts, r.Axes[i].Name()+"="+p.Values[i])
		}
	}
	return strings.Join(parts, " ")
}
