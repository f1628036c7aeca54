package listing

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// MlnxQoS is mlnx_qos -i IF, for any driver with DCB.
func MlnxQoS(s *snapshot.Snapshot, netdev string) ([]byte, error) {
	n, err := interfaceOf(s, netdev)
	if err != nil {
		return nil, err
	}
	q := &n.DCB
	pfc, ok := q.PFC.Get()
	if !ok {
		return nil, fail(1, "%s: priority flow control: %s", n.Name, q.PFC.Why())
	}
	var b []byte
	p := func(format string, args ...any) { b = fmt.Appendf(b, format, args...) }
	if agent := q.LLDPAgent.Or(""); agent != "" {
		p("****** WARNING: %s service is running and may overwrite your settings ******\n\n", agent)
	}
	known(q.DCBX, func(mode []string) {
		who := "Firmware controlled"
		for _, m := range mode {
			if m == "host" {
				who = "OS controlled"
			}
		}
		p("DCBX mode: %s\n", who)
	})
	known(q.Trust, func(t string) {
		p("Priority trust state: %s\n", t)
		if t == "dscp" {
			b = appendDSCP(b, q.Apps.Or(nil))
		}
	})
	buffer, hasBuffer := q.Buffer.Get()
	if hasBuffer {
		p("Receive buffer size (bytes): ")
		for _, size := range buffer.Size {
			p("%d,", size)
		}
		p("max_buffer_size=%d\n", buffer.Total)
	}
	known(q.Cable, func(m int) { p("Cable len: %d\n", m) })
	p("PFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\tenabled     ")
	for _, on := range pfc.Enabled {
		p("%d   ", bit(on))
	}
	p("\n")
	if hasBuffer {
		p("\tbuffer      ")
		for _, x := range buffer.PrioBuffer {
			p("%d   ", x)
		}
		p("\n")
	}
	known(q.ETS, func(e snapshot.ETS) { b = appendTCs(b, e, q.MaxRate.Or([8]uint64{})) })
	return b, nil
}

func bit(on bool) int {
	if on {
		return 1
	}
	return 0
}

// appendDSCP lists the code points of each priority, highest first, eight on a line.
// Without a table entry a code point has the priority of its class selector.
func appendDSCP(b []byte, apps []snapshot.DCBApp) []byte {
	var prio [64]int
	for i := range prio {
		prio[i] = i / 8
	}
	for _, a := range apps {
		if a.Selector == "dscp" && a.Protocol >= 0 && a.Protocol < 64 {
			prio[a.Protocol] = a.Priority
		}
	}
	b = append(b, "dscp2prio mapping:\n"...)
	for p := range 8 {
		n := 0
		for dscp := 63; dscp >= 0; dscp-- {
			if prio[dscp] != p {
				continue
			}
			if n%8 == 0 {
				if n > 0 {
					b = append(b, '\n')
				}
				b = fmt.Appendf(b, "\tprio:%d dscp:", p)
			}
			b = fmt.Appendf(b, "%02d,", dscp)
			n++
		}
		if n > 0 {
			b = append(b, '\n')
		}
	}
	return b
}

// appendTCs lists traffic classes with their priorities.
func appendTCs(b []byte, e snapshot.ETS, maxKbps [8]uint64) []byte {
	for tc := range 8 {
		var prios []int
		for prio, of := range e.PrioTC {
			if of == tc {
				prios = append(prios, prio)
			}
		}
		if len(prios) == 0 {
			continue
		}
		rate := "unlimited"
		if v := maxKbps[tc]; v != 0 {
			rate = strconv.FormatFloat(float64(v)/1e6, 'f', 1, 64) + " Gbps"
		}
		b = fmt.Appendf(b, "tc: %d ratelimit: %s, tsa: %s", tc, rate, e.TSA[tc])
		if e.TSA[tc] == "ets" {
			b = fmt.Appendf(b, ", bw: %d%%", e.TCBW[tc])
		}
		b = append(b, '\n')
		sort.Ints(prios)
		for _, p := range prios {
			b = fmt.Appendf(b, "\t priority:  %d\n", p)
		}
	}
	return b
}

// DCBPFC is dcb pfc show dev IF; with statistics, dcb -s.
func DCBPFC(s *snapshot.Snapshot, netdev string, statistics, asJSON bool) ([]byte, error) {
	n, err := interfaceOf(s, netdev)
	if err != nil {
		return nil, err
	}
	pfc, ok := n.DCB.PFC.Get()
	if !ok {
		return nil, fail(1, "Attribute read: %s", strings.Replace(n.DCB.PFC.Why(), "not supported", "Operation not supported", 1))
	}
	if asJSON {
		var r row
		r.jsonNumber("pfc_cap", uint64(pfc.Cap))
		r.key("macsec_bypass")
		r.json = strconv.AppendBool(r.json, pfc.MBC)
		r.jsonNumber("delay", uint64(pfc.Delay))
		var on []string
		for _, x := range pfc.Enabled {
			on = append(on, strconv.FormatBool(x))
		}
		r.key("prio_pfc")
		r.json = append(r.json, "["+strings.Join(on, ",")+"]"...)
		if statistics {
			for _, l := range []struct {
				name string
				v    [8]uint64
			}{{"requests", pfc.Requests}, {"indications", pfc.Indications}} {
				r.key(l.name)
				r.json = append(r.json, strings.ReplaceAll(fmt.Sprint(l.v), " ", ",")...)
			}
		}
		return append(append([]byte{'{'}, r.json...), "}\n"...), nil
	}
	bypass := "off"
	if pfc.MBC {
		bypass = "on"
	}
	b := fmt.Appendf(nil, "pfc-cap %d macsec-bypass %s delay %d \nprio-pfc ", pfc.Cap, bypass, pfc.Delay)
	for i, on := range pfc.Enabled {
		b = fmt.Appendf(b, "%d:%s ", i, map[bool]string{true: "on", false: "off"}[on])
	}
	b = append(b, '\n')
	if statistics {
		for _, l := range []struct {
			name string
			v    [8]uint64
		}{{"requests", pfc.Requests}, {"indications", pfc.Indications}} {
			b = append(append(b, l.name...), ' ')
			for i, v := range l.v {
				b = fmt.Appendf(b, "%d:%d ", i, v)
			}
			b = append(b, '\n')
		}
	}
	return b, nil
}
