package lab

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/metric"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
)

// Outcome is how an expectation came out.
type Outcome struct {
	Expect scenario.Expect
	Value  metric.Value
	OK     bool
	// Err says that the result has no such number, or one of another unit than
	// the bounds; nil otherwise. OK is false then.
	Err error
}

// Judge holds a result to an expectation.
func Judge(r *result.Run, e *scenario.Expect) Outcome {
	o := Outcome{Expect: *e}
	if o.Value, o.Err = metric.Of(r, e.What); o.Err != nil {
		return o
	}
	for _, q := range [...]scenario.Quantity{e.Min, e.Max, e.Near} {
		if q.Given() && q.Value != 0 && unitOf(q.Unit) != o.Value.Unit {
			o.Err = fmt.Errorf("%s is expected to be %s, which has another unit", e.What, q)
			return o
		}
	}
	v := o.Value.V
	o.OK = !(e.Min.Given() && v < e.Min.Value || e.Max.Given() && v > e.Max.Value)
	if e.Near.Given() {
		off := e.Near.Value * e.Within.Float()
		o.OK = o.OK && v >= e.Near.Value-off && v <= e.Near.Value+off
	}
	return o
}

func unitOf(u scenario.QuantityUnit) metric.Unit {
	switch u {
	case scenario.BitsPerSecond:
		return metric.Bits
	case scenario.Picoseconds:
		return metric.Time
	case scenario.ByteCount:
		return metric.Bytes
	case scenario.NoQuantity, scenario.Number:
	}
	return metric.Number
}
