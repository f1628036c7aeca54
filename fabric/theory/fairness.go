package theory

import (
	"fmt"
	"math"
)

// Demand is one flow of a max-min problem.
type Demand struct {
	Links  []int   // indices of the links that it crosses
	Weight float64 // share relative to others; 0 is 1
	Limit  float64 // what it wants at most (NIC, rate limit); 0 is no limit
}

// NoLink is the bottleneck of a flow that its own limit holds back.
const NoLink = -1

// MaxMin returns the max-min fair rates by water filling (Bertsekas and Gallager,
// Data Networks §6.5.2): the level rises for all flows alike, in proportion to
// their weights, until a link is full or a limit reached; what is held there
// stays, the rest goes on. bottleneck is the link that holds each flow, or
// NoLink.
//
// Rates and capacities are in one unit. An error names the flow or link.
func MaxMin(capacity []float64, flows []Demand) (rates []float64, bottleneck []int, err error) {
	if err := checkDemands(capacity, flows); err != nil {
		return nil, nil, err
	}
	rates, bottleneck = make([]float64, len(flows)), make([]int, len(flows))
	fixed := make([]bool, len(flows))
	weight := func(f int) float64 {
		if flows[f].Weight == 0 {
			return 1
		}
		return flows[f].Weight
	}
	for left := len(flows); left > 0; {
		// The lowest level at which something holds.
		room, load := make([]float64, len(capacity)), make([]float64, len(capacity))
		copy(room, capacity)
		level, at := math.Inf(1), NoLink
		for f := range flows {
			for _, l := range flows[f].Links {
				if fixed[f] {
					room[l] -= rates[f]
				} else {
					load[l] += weight(f)
				}
			}
			if lim := flows[f].Limit; !fixed[f] && lim > 0 && lim/weight(f) < level {
				level = lim / weight(f)
			}
		}
		for l := range capacity {
			if load[l] > 0 && max(0, room[l])/load[l] < level {
				level, at = max(0, room[l])/load[l], l
			}
		}
		for f := range flows {
			if fixed[f] || !holds(flows[f], weight(f), level, at) {
				continue
			}
			fixed[f], rates[f], bottleneck[f] = true, level*weight(f), at
			left--
		}
	}
	return rates, bottleneck, nil
}

// holds says whether the link at, or if that is NoLink the flow's own limit,
// holds a flow at a level.
func holds(d Demand, weight, level float64, at int) bool {
	if at == NoLink {
		return d.Limit > 0 && d.Limit/weight <= level
	}
	for _, l := range d.Links {
		if l == at {
			return true
		}
	}
	return false
}

func checkDemands(capacity []float64, flows []Demand) error {
	for l, c := range capacity {
		if !(c >= 0) || math.IsInf(c, 0) {
			return fmt.Errorf("max-min: link %d: capacity %g is not a finite number ≥ 0", l, c)
		}
	}
	for f, d := range flows {
		if !(d.Weight >= 0) || !(d.Limit >= 0) || math.IsInf(d.Weight, 0) || math.IsInf(d.Limit, 0) {
			return fmt.Errorf("max-min: flow %d: weight %g and limit %g must be finite and ≥ 0", f, d.Weight, d.Limit)
		}
		if len(d.Links) == 0 && d.Limit == 0 {
			return fmt.Errorf("max-min: flow %d crosses no link and has no limit", f)
		}
		for i, l := range d.Links {
			if l < 0 || l >= len(capacity) {
				return fmt.Errorf("max-min: flow %d: link %d is not one of 0..%d", f, l, len(capacity)-1)
			}
			for _, m := range d.Links[:i] {
				if m == l {
					return fmt.Errorf("max-min: flow %d crosses link %d twice", f, l)
				}
			}
		}
	}
	return nil
}

// Jain returns Jain's fairness index (sum x)^2 / (n sum x^2): 1 when all are
// equal, 1/n when one has everything; 1 for nothing at all.
func Jain(x []float64) float64 {
	var sum, squares float64
	for _, v := range x {
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(x)) * squares)
}
