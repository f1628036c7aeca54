package theory

// SwitchBuffer is the arithmetic of a shared buffer as the DCQCN paper does it
// (SIGCOMM'15 §4): every priority of every port may pause, so headroom is set
// aside for all of them, and the rest is shared. Sizes are in bytes.
type SwitchBuffer struct {
	Bytes    float64 // B
	Ports    float64 // n
	Prios    float64 // 8
	Headroom float64 // t_flight, of one priority of one port
}

// Shared returns what is left when all headroom is set aside: B - 8 n t_flight.
func (b SwitchBuffer) Shared() float64 { return b.Bytes - b.Prios*b.Ports*b.Headroom }

// StaticPFC returns the largest fixed XOFF threshold at which nothing is dropped
// when every priority of every port is at it: (B - 8 n t_flight)/(8 n).
func (b SwitchBuffer) StaticPFC() float64 { return b.Shared() / (b.Prios * b.Ports) }

// StaticECN returns the bound on the ECN threshold that lets ECN act before PFC
// with a fixed t_PFC: one ingress may feed all n egress queues, each at the ECN
// threshold, so n t_ECN < t_PFC.
func (b SwitchBuffer) StaticECN() float64 { return b.StaticPFC() / b.Ports }

// DynamicPFC returns the XOFF threshold when used bytes of the shared part are
// taken and the switch gives beta parts of the rest to 8 priorities:
// beta (B - 8 n t_flight - s)/8.
func (b SwitchBuffer) DynamicPFC(beta, used float64) float64 {
	return beta * (b.Shared() - used) / b.Prios
}

// DynamicECN returns the bound on the ECN threshold with the dynamic t_PFC:
// beta (B - 8 n t_flight)/(8 n (beta+1)).
func (b SwitchBuffer) DynamicECN(beta float64) float64 {
	return beta * b.Shared() / (b.Prios * b.Ports * (beta + 1))
}

// Resume returns where a paused neighbour is let go on: two MTU below XOFF.
func Resume(xoff, mtu float64) float64 { return max(0, xoff-2*mtu) }

// DynamicThreshold returns the level at which k queues that all want more come to
// rest in a shared pool with T = alpha * free (Choudhury and Hahne 1998):
//
//	T = alpha (B - k T)  =>  T = alpha B / (1 + k alpha).
//
// For an ingress pool it is the XOFF level that k congested ports reach.
func DynamicThreshold(alpha, pool float64, k int) float64 {
	return alpha * pool / (1 + float64(k)*alpha)
}

// DynamicFree returns what stays free then: B / (1 + k alpha).
func DynamicFree(alpha, pool float64, k int) float64 { return pool / (1 + float64(k)*alpha) }

// ECNBeforePFC reports whether ECN marks before PFC pauses: egresses queues at
// the ECN threshold ecn, all fed by one ingress, stay below its XOFF level. spare
// is what is missing (negative) or left, in bytes.
func ECNBeforePFC(ecn, xoff float64, egresses int) (ok bool, spare float64) {
	spare = xoff - float64(egresses)*ecn
	return spare > 0, spare
}
