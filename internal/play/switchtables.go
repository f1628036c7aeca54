package play

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo"
)

// tablePort is a port as the tables of a switch have it.
type tablePort struct {
	rate  sim.Rate
	cable scenario.Length
	mtu   int64
}

// What a port has of which the tables say nothing.
const (
	tableRate  = 100 * sim.Gbps
	tableMTU   = 9100       // SONiC's default, without Ethernet's header and FCS
	tableCable = 300 * 1000 // millimetres: longer than cables within a hall
	ethernet   = 14 + 4 + 4 // header, tag, FCS
)

// tablePorts returns how many ports of each kind the tables have.
func tablePorts(src *Source) (map[tablePort]int, error) {
	db, err := scenario.ReadSONiC(src.File, src.Text)
	if err != nil {
		return nil, err
	}
	cables, err := db.Cables()
	if err != nil {
		return nil, err
	}
	var doc struct {
		Port map[string]struct {
			Speed json.RawMessage `json:"speed"`
			MTU   json.RawMessage `json:"mtu"`
		} `json:"PORT"`
	}
	_ = json.Unmarshal(src.Text, &doc) // what has another form counts as not given
	length := map[string]scenario.Length{}
	for _, c := range cables {
		length[c.Port] = c.Length
	}
	out := map[tablePort]int{}
	for name, p := range doc.Port {
		k := tablePort{tableRate, tableCable, tableMTU}
		if n := tableNumber(p.Speed); n > 0 && n <= 10_000_000 {
			k.rate = sim.Rate(n) * sim.Mbps
		}
		if n := tableNumber(p.MTU); n >= 64 && n <= 65000 {
			k.mtu = n
		}
		if c, ok := length[name]; ok {
			if k.cable = c; c == 0 {
				continue // SONiC's word for a port that is not used
			}
		}
		out[k]++
	}
	if len(out) == 0 {
		out[tablePort{tableRate, tableCable, tableMTU}] = 0
	}
	return out, nil
}

// tableNumber reads a number, in quotes as SONiC writes all of them, or without.
func tableNumber(raw json.RawMessage) int64 {
	s := string(raw)
	if t, err := strconv.Unquote(s); err == nil {
		s = t
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// TableScenario returns a scenario on whose switches tables can be looked at: a
// star with the fastest ports that they have.
func TableScenario(tables *Source) (*Source, error) {
	ports, err := tablePorts(tables)
	if err != nil {
		return nil, err
	}
	var top tablePort
	for p := range ports {
		if cmp.Or(cmp.Compare(p.rate, top.rate), cmp.Compare(p.cable, top.cable), cmp.Compare(p.mtu, top.mtu)) > 0 {
			top = p
		}
	}
	text := fmt.Sprintf("name: %q\ntopology: {kind: star, hosts: 4, rate: %s, cable: %s}\n"+
		"workload: [{name: incast, kind: incast, src: host1..host3, dst: host0, bytes: 1MB}]\n",
		baseName(tables.File), scenario.RateText(top.rate), top.cable)
	return &Source{Name: tables.Name, File: tables.File, Text: []byte(text), made: true}, nil
}

// TableClasses works out the headroom of the ports of a switch's tables: their
// speeds, cables and MTUs. How fast a neighbour obeys a pause is not in them:
// at once.
func TableClasses(tables *Source, sc *scenario.Scenario) ([]Class, error) {
	ports, err := tablePorts(tables)
	if err != nil || sc.Switch.PFC.Priorities == 0 {
		return nil, err
	}
	var out []Class
	for p, n := range ports {
		l := scenario.PortLink{
			Rate: p.rate, Delay: p.cable.Delay(), MaxFrame: p.mtu + ethernet, Least: sc.Packet.LeastFrame(), Gap: sc.Packet.GapBytes(),
		}
		out = append(out, Class{
			Switch: "switch", Peer: p.cable.String(), Rate: l.Rate, Delay: l.Delay, Ports: n,
			Need: sc.Switch.Buffer.NeedHeadroom(l), Have: sc.Switch.Buffer.HaveHeadroom(l),
		})
	}
	slices.SortFunc(out, func(a, b Class) int {
		return cmp.Or(cmp.Compare(b.Need-b.Have, a.Need-a.Have), cmp.Compare(a.Rate, b.Rate), cmp.Compare(a.Delay, b.Delay), cmp.Compare(a.Need, b.Need))
	})
	return out, nil
}

// Examine reads, builds and checks a scenario without running it.
func (r *Reading) Examine(files *Files) (g *topo.Graph, warnings []string, err error) {
	run, warnings, err := r.Load(files)
	if err != nil {
		return nil, warnings, err
	}
	return run.Graph, warnings, nil
}
