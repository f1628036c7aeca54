package theory

import "math"

// Class is one traffic class of a port under 802.1Qaz.
type Class struct {
	// Strict classes are served before the others, in the order of the slice.
	Strict bool
	Weight float64 // ETS share of the others, > 0
	Demand float64 // what is offered; +Inf for a standing queue
}

// ETS returns what each class gets of a port: strict classes what they want as
// long as there is any, the rest shared by weight, and what a class leaves
// shared by the others in the same proportion (802.1Qaz §37.3; DWRR reaches it
// over many rounds). A standing queue has demand +Inf.
func ETS(capacity float64, classes []Class) []float64 {
	got := make([]float64, len(classes))
	for i, c := range classes {
		if c.Strict {
			got[i] = max(0, min(capacity, c.Demand))
			capacity -= got[i]
		}
	}
	weights, demands := make([]float64, len(classes)), make([]float64, len(classes))
	for i, c := range classes {
		if !c.Strict {
			weights[i], demands[i] = c.Weight, c.Demand
		}
	}
	for i, v := range fill(capacity, weights, demands) {
		got[i] += v
	}
	return got
}

// PortFair returns the shares of ports that all send to one egress: a switch
// under PFC serves its ingress ports in turn, so k ports in backlog get 1/k each,
// whatever the number of flows behind each, and a port that wants less leaves the
// rest to the others.
func PortFair(capacity float64, demands []float64) []float64 {
	weights := make([]float64, len(demands))
	for i := range weights {
		weights[i] = 1
	}
	return fill(capacity, weights, demands)
}

// PortFlows returns what a flow gets behind each of the ports, all in backlog:
// 1/(k m) of the egress for a port with m flows (SIGCOMM'15 DCQCN §2.2, the
// unfairness of PFC). Ports without a flow get nothing.
func PortFlows(capacity float64, flows []int) []float64 {
	demands := make([]float64, len(flows))
	for i, m := range flows {
		if m > 0 {
			demands[i] = math.Inf(1)
		}
	}
	shares := PortFair(capacity, demands)
	for i, m := range flows {
		if m > 0 {
			shares[i] /= float64(m)
		}
	}
	return shares
}

// ParkingLot returns what a flow gets by the switch at which it enters a chain of
// switches under PFC, all links alike. local is the ports with one flow each at
// every switch, the one farthest from the receiver first; each switch beyond the
// first has one more port, from the switch before. Going back from the receiver,
// each switch divides what it has by its ports.
func ParkingLot(capacity float64, local []int) []float64 {
	got := make([]float64, len(local))
	for i := len(local) - 1; i >= 0; i-- {
		ports := local[i]
		for _, n := range local[:i] {
			if n > 0 {
				ports++ // the switch before has something to send
				break
			}
		}
		if ports == 0 {
			break
		}
		capacity /= float64(ports)
		if local[i] > 0 {
			got[i] = capacity
		}
	}
	return got
}

// fill shares a capacity by weight among those who want it, none above its
// demand. Weight 0 gets nothing.
func fill(capacity float64, weights, demands []float64) []float64 {
	got := make([]float64, len(weights))
	done := make([]bool, len(weights))
	for {
		var sum float64
		for i, w := range weights {
			if !done[i] && w > 0 && demands[i] > 0 {
				sum += w
			}
		}
		if sum == 0 || capacity <= 0 {
			return got
		}
		level, filled := capacity/sum, false
		for i, w := range weights {
			if !done[i] && w > 0 && demands[i] > 0 && demands[i] <= level*w {
				done[i], filled = true, true
				got[i] = demands[i]
				capacity -= demands[i]
			}
		}
		if filled {
			continue
		}
		for i, w := range weights {
			if !done[i] && w > 0 && demands[i] > 0 {
				got[i] = level * w
			}
		}
		return got
	}
}
