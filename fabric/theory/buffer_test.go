package theory_test

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/theory"
)

// SIGCOMM'15 DCQCN §4: 22.4 KB of headroom, 12 MB, 32 ports, 8 priorities, beta 8.
func TestSwitchBufferOfThePaper(t *testing.T) {
	b := theory.SwitchBuffer{Bytes: 12e6, Ports: 32, Prios: 8, Headroom: 22.4e3}
	// The paper cuts digits: 24.475 is printed as 24.47 and 21.756 as 21.75.
	near(t, "static t_PFC", b.StaticPFC(), 24.475e3, 1e-4)
	near(t, "dynamic t_ECN", b.DynamicECN(8), 21.756e3, 1e-4)
	// The paper prints t_ECN < 0.85 KB. Its own t_PFC over its own n is 0.765;
	// either is less than a frame, which is the point.
	near(t, "static t_ECN", b.StaticECN(), 0.765e3, 1e-3)
	if b.StaticECN() >= 1500 || b.DynamicECN(8) < 1500 {
		t.Error("a static threshold must be infeasible, and the dynamic one feasible")
	}
	// The bound is where 8n queues at t_ECN leave a t_PFC of n t_ECN.
	ecn := b.DynamicECN(8)
	near(t, "t_PFC at the bound", b.DynamicPFC(8, 8*32*ecn), 32*ecn, 1e-9)
	near(t, "resume", theory.Resume(24.47e3, 1500), 21.47e3, 1e-9)
}

func TestECNBeforePFC(t *testing.T) {
	b := theory.SwitchBuffer{Bytes: 12e6, Ports: 32, Prios: 8, Headroom: 22.4e3}
	if ok, spare := theory.ECNBeforePFC(b.StaticECN()*0.99, b.StaticPFC(), 32); !ok || spare <= 0 {
		t.Errorf("below the bound: %v %g", ok, spare)
	}
	if ok, spare := theory.ECNBeforePFC(5e3, b.StaticPFC(), 32); ok || spare >= 0 {
		t.Errorf("5 KB: %v %g", ok, spare)
	}
}

// Choudhury and Hahne: alpha 1 gives one queue half of the pool and leaves half;
// 1/8 (HPCC's edge ports) gives one a ninth.
func TestDynamicThreshold(t *testing.T) {
	near(t, "alpha 1", theory.DynamicThreshold(1, 9e6, 1), 4.5e6, 1e-12)
	near(t, "alpha 1/8", theory.DynamicThreshold(0.125, 9e6, 1), 1e6, 1e-12)
	for k := range 100 {
		for _, a := range []float64{1.0 / 128, 0.125, 1, 8} {
			at, free := theory.DynamicThreshold(a, 9e6, k), theory.DynamicFree(a, 9e6, k)
			near(t, "threshold is alpha times free", at, a*free, 1e-12)
			near(t, "all bytes", float64(k)*at+free, 9e6, 1e-12)
		}
	}
}
