package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// losslessPrio is the priority that RDMA should be in. It is told, or the single one
// with PFC, or the one of the DSCP of the traffic.
func losslessPrio(s *scope) reading {
	switch {
	case s.in.Prio > 7:
		return none("given", "priority %d, must be 0 to 7", s.in.Prio)
	case s.in.Prio >= 0:
		return is(s.in.Prio, "given")
	}
	if s.now.net == nil {
		return noNetdev()
	}
	place := "dcb pfc show dev " + s.now.net.Name
	pfc, ok := s.now.net.DCB.PFC.Get()
	if ok {
		one, n := 0, 0
		for p, on := range pfc.Enabled {
			if on {
				one, n = p, n+1
			}
		}
		if n == 1 {
			return is(one, place)
		}
	}
	if r := appDSCP(s); r.value != nil && r.value != 0 {
		if p := mapDSCP(s, r.value.(int)); p.value != nil && p.value != 0 {
			return p
		}
	}
	if !ok {
		return none(place, "%s", s.now.net.DCB.PFC.Why())
	}
	return none(place, "PFC is on for none or several priorities, and no DSCP says which is meant: give --prio")
}

func pfcOf(s *scope) (snapshot.PFC, reading, bool) {
	if s.now.net == nil {
		return snapshot.PFC{}, noNetdev(), false
	}
	place := "dcb pfc show dev " + s.now.net.Name
	p, ok := s.now.net.DCB.PFC.Get()
	if !ok {
		return p, none(place, "%s", s.now.net.DCB.PFC.Why()), false
	}
	return p, reading{place: place}, true
}

func pfcList(s *scope) reading {
	p, r, ok := pfcOf(s)
	if !ok {
		return r
	}
	var out []string
	for i, on := range p.Enabled {
		if on {
			out = append(out, strconv.Itoa(i))
		}
	}
	if out == nil {
		return is("none", r.place)
	}
	return is(strings.Join(out, ","), r.place)
}

func pfcCount(s *scope) reading {
	p, r, ok := pfcOf(s)
	if !ok {
		return r
	}
	n := 0
	for _, on := range p.Enabled {
		if on {
			n++
		}
	}
	return is(n, r.place)
}

func pfcOnPrio(s *scope) reading {
	p, r, ok := pfcOf(s)
	if !ok {
		return r
	}
	prio := losslessPrio(s)
	n, ok := prio.value.(int)
	if !ok {
		return prio
	}
	return is(p.Enabled[n], r.place)
}

func trust(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	place := netdevPath(s, "qos/trust")
	if t, ok := s.now.net.DCB.Trust.Get(); ok {
		return is(t, place)
	}
	// Without a word for it: entries of the application table by DSCP mean dscp.
	if apps, ok := s.now.net.DCB.Apps.Get(); ok {
		for i := range apps {
			if apps[i].Selector == "dscp" {
				return is("dscp", "dcb app show dev "+s.now.net.Name)
			}
		}
	}
	return none(place, "%s", s.now.net.DCB.Trust.Why())
}

// trafficClassNames are the variables by which programs set the traffic class.
var trafficClassNames = []string{"NCCL_IB_TC", "UCX_IB_TRAFFIC_CLASS", "NVSHMEM_IB_TRAFFIC_CLASS", "MC_IB_TC"}

// appDSCP is the DSCP of the RDMA traffic.
func appDSCP(s *scope) reading {
	r := appTrafficClass(s)
	if tc, ok := r.value.(int); ok {
		r.value = tc >> 2
	}
	return r
}

// appTrafficClass is the traffic class of the RDMA traffic: forced by the driver, else what the
// program, its environment or a queue pair says, else that of the connection manager.
func appTrafficClass(s *scope) reading {
	if s.now.port != nil {
		if tc, ok := s.now.port.TrafficClass.Get(); ok {
			return is(tc, portPath(s, "tc/1/traffic_class"))
		}
	}
	if s.now.qp != nil {
		if tc, ok := s.now.qp.TrafficClass.Get(); ok {
			return is(tc, s.name())
		}
	}
	if a := s.app(); a != nil {
		if tc, ok := a.TrafficClass.Get(); ok {
			return is(tc, "traffic class of the program")
		}
		for _, name := range trafficClassNames {
			if v, ok := a.Env[name]; ok {
				if tc, err := strconv.Atoi(v); err == nil && tc >= 0 && tc < 256 {
					return is(tc, "environment: "+name+"="+v)
				}
			}
		}
	}
	if s.now.qp == nil {
		if r, ok := ofQPs(s, "traffic classes", func(q *snapshot.QP) snapshot.Value[int] { return q.TrafficClass }); ok {
			return r
		}
	}
	if s.now.port != nil {
		if tos, ok := s.now.port.CMTOS.Get(); ok {
			return is(tos, portPath(s, "default_roce_tos"))
		}
	}
	return none("", "no traffic class is known: of the driver, a program, its environment or a queue pair")
}

// mapDSCP is the priority of a DSCP: by the application table, else eight DSCPs to a
// priority as drivers do by default, where the priority is taken from the DSCP.
func mapDSCP(s *scope, dscp int) reading {
	place := "dcb app show dev " + s.now.net.Name
	apps, ok := s.now.net.DCB.Apps.Get()
	if !ok {
		return none(place, "%s", s.now.net.DCB.Apps.Why())
	}
	for i := range apps {
		if apps[i].Selector == "dscp" && apps[i].Protocol == dscp {
			if p := apps[i].Priority; p < 0 || p > 7 {
				return none(place, "DSCP %d is mapped to priority %d, which there is not", dscp, p)
			}
			return is(apps[i].Priority, place)
		}
	}
	if t, ok := s.now.net.DCB.Trust.Get(); ok && t == "dscp" && len(apps) == 0 {
		return is(dscp/8, "default map of eight DSCPs to a priority")
	}
	return is(0, place)
}

func appPrio(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	r := appDSCP(s)
	dscp, ok := r.value.(int)
	if !ok {
		return r
	}
	return mapDSCP(s, dscp)
}

// cnpPrio is the priority of CNPs: the parameter of the notification point, or what
// their DSCP maps to.
func cnpPrio(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	place := netdevPath(s, "ecn/roce_np/cnp_802p_prio")
	np, ok := s.now.net.DCB.NP.Get()
	if !ok {
		return none(place, "%s", s.now.net.DCB.NP.Why())
	}
	if p, ok := np.Params["cnp_802p_prio"]; ok {
		return is(int(p), place)
	}
	dscp, ok := np.Params["cnp_dscp"]
	if !ok {
		return none(place, "neither the priority nor the DSCP of CNPs is recorded")
	}
	return mapDSCP(s, int(dscp))
}

func congestionOn(which string) func(*scope) reading {
	return func(s *scope) reading {
		if s.now.net == nil {
			return noNetdev()
		}
		prio := losslessPrio(s)
		n, ok := prio.value.(int)
		if !ok {
			return prio
		}
		place := netdevPath(s, fmt.Sprintf("ecn/%s/enable/%d", which, n))
		v := s.now.net.DCB.NP
		if which == "roce_rp" {
			v = s.now.net.DCB.RP
		}
		c, ok := v.Get()
		if !ok {
			return none(place, "%s", v.Why())
		}
		on, ok := c.Enabled[n]
		if !ok {
			return none(place, "not recorded")
		}
		return is(on, place)
	}
}

// prio0Share is by the counters rx_prioN_bytes and tx_prioN_bytes, between the
// snapshots where there are two.
func prio0Share(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	place := "ethtool -S " + s.now.net.Name
	var zero, all float64
	n := 0
	for prio := range 8 {
		for _, dir := range []string{"rx", "tx"} {
			name := fmt.Sprintf("%s_prio%d_bytes", dir, prio)
			v, ok := s.now.net.Ethtool.Get(name).Get()
			if !ok {
				continue
			}
			if s.before != nil && s.before.net != nil {
				d, ok := snapshot.Delta(s.before.net.Ethtool.Get(name), s.now.net.Ethtool.Get(name)).Get()
				if !ok {
					continue
				}
				v = d
			}
			n++
			all += float64(v)
			if prio == 0 {
				zero += float64(v)
			}
		}
	}
	switch {
	case n < 16:
		return none(place, "no bytes by priority")
	case all < 1e6:
		return none(place, "only %v bytes in all priorities: too few to judge", all)
	}
	return is(zero/all, place)
}

func prioBuffer(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	place := "dcb buffer show dev " + s.now.net.Name
	b, ok := s.now.net.DCB.Buffer.Get()
	if !ok {
		return none(place, "%s", s.now.net.DCB.Buffer.Why())
	}
	prio := losslessPrio(s)
	n, ok := prio.value.(int)
	if !ok {
		return prio
	}
	if buf := b.PrioBuffer[n]; buf >= 0 && buf < 8 {
		return is(b.Size[buf], place)
	}
	return none(place, "priority %d is in buffer %d, which there is not", n, b.PrioBuffer[n])
}

func etsShare(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	place := "dcb ets show dev " + s.now.net.Name
	e, ok := s.now.net.DCB.ETS.Get()
	if !ok {
		return none(place, "%s", s.now.net.DCB.ETS.Why())
	}
	prio := losslessPrio(s)
	n, ok := prio.value.(int)
	if !ok {
		return prio
	}
	tc := e.PrioTC[n]
	if tc < 0 || tc > 7 {
		return none(place, "priority %d is in traffic class %d, which there is not", n, tc)
	}
	if e.TSA[tc] != "ets" {
		return is(100, place)
	}
	return is(e.TCBW[tc], place)
}
