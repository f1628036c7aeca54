package scenario

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo"
)

// graphOf parses a file and builds its graph.
func graphOf(t *testing.T, text string) (*Scenario, *topo.Graph) {
	t.Helper()
	s := mustParse(t, []byte(text))
	g, err := s.Graph(nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s, g
}

// Each kind has the hosts that its description promises, with the rates and
// delays of its keys.
func TestGraphs(t *testing.T) {
	for _, c := range []struct {
		in           string
		hosts, nodes int
		links        int
	}{
		{"topology: {hosts: 5}", 5, 6, 5},
		{"topology: {hosts: 2, nics: 4}", 2, 3, 8},
		{"topology: {kind: dumbbell, left: 3, right: 2, uplink_rate: 10Gbps}", 5, 7, 6},
		{"topology: {kind: parking-lot, switches: 4, hosts_per_switch: 2}", 8, 12, 11},
		{"topology: {kind: spine-leaf}", 32, 44, 64}, // 4 leaves of 8 hosts, 8 spines
		{"topology: {kind: fat-tree, k: 4}", 16, 36, 48},
		{"topology: {kind: three-tier, cores: 4, uplinks_per_agg: 1}", 32, 32 + 4 + 4 + 4, 32 + 8 + 8},
		{"topology: {kind: rail, units: 2, hosts_per_unit: 4, nics: 8, spines: 4}", 8, 8 + 16 + 4, 64 + 64},
		{"topology: {kind: ring, switches: 3, hosts_per_switch: 1}", 3, 6, 6},
		{"topology: {kind: bounce, hosts_per_leaf: 2}", 8, 8 + 4 + 2, 8 + 8},
	} {
		_, g := graphOf(t, c.in)
		if g.Hosts() != c.hosts || len(g.Nodes) != c.nodes || len(g.Links) != c.links {
			t.Errorf("%s: %d hosts, %d nodes, %d links", c.in, g.Hosts(), len(g.Nodes), len(g.Links))
		}
	}
	_, g := graphOf(t, "topology: {kind: spine-leaf, rate: 25Gbps, cable: 20m, uplink_rate: 100Gbps, uplink_delay: 2us, error_rate: 1/1024}")
	down, up := g.Link(g.Node("host0"), 0), g.Link(g.Node("spine0"), 0)
	if down.Rate != 25*sim.Gbps || down.Delay != 100*sim.Nanosecond || up.Rate != 100*sim.Gbps || up.Delay != 2*sim.Microsecond ||
		down.ErrorRate != 1<<22 {
		t.Errorf("%+v %+v", down, up)
	}
	if g.Endpoints[0].Subnet != 0 || g.Endpoints[31].Subnet != 0 {
		t.Error("one subnet is the default")
	}
	_, g = graphOf(t, "topology: {kind: spine-leaf, subnets: per-leaf}")
	if g.Endpoints[0].Subnet == g.Endpoints[31].Subnet {
		t.Error("leaves are subnets")
	}
}

func TestExplicitGraph(t *testing.T) {
	_, g := graphOf(t, `
topology:
  kind: explicit
  rate: 25Gbps
  delay: 300ns
  nodes: [{name: a, kind: host}, {name: b, kind: host}, {name: s1, kind: switch}, {name: s2, kind: switch}]
  links:
    - {a: a, b: s1}
    - {a: b, b: s2, rate: 10Gbps, cable: 100m}
    - {a: s1, b: s2, count: 2, error_rate: 1/2}
  routes:
    - {switch: s1, to: b, via: Ethernet2}
    - {switch: s2, to: s1, via: s1}
`)
	if len(g.Links) != 4 || g.Links[1].Rate != 10*sim.Gbps || g.Links[1].Delay != 500*sim.Nanosecond || g.Links[0].Delay != 300*sim.Nanosecond ||
		g.Links[2].ErrorRate != 1<<31 {
		t.Errorf("%+v", g.Links)
	}
	want := []topo.Static{
		{Switch: 2, Leaf: -1, Endpoint: 1, Ports: []uint16{2}},
		{Switch: 3, Leaf: 2, Endpoint: -1, Ports: []uint16{1, 2}},
	}
	if fmt.Sprint(g.Static) != fmt.Sprint(want) {
		t.Errorf("%+v", g.Static)
	}
	r, err := g.Routes()
	if err != nil || !slices.Equal(r.Ports(2, 1), []uint16{2}) {
		t.Errorf("%v %v", r.Ports(2, 1), err)
	}
}

func TestGraphFromFile(t *testing.T) {
	s := mustParse(t, []byte("topology: {kind: file, file: topology.txt}"))
	open := func(name string) (io.Reader, error) {
		if name != "topology.txt" {
			return nil, errors.New("no such file")
		}
		return strings.NewReader("3 1 2\n2\n0 2 100Gbps 1000ns 0\n1 2 100Gbps 0.001ms 0\n"), nil
	}
	g, err := s.Graph(open)
	if err != nil || g.Hosts() != 2 || g.Links[1].Delay != sim.Microsecond {
		t.Errorf("%+v %v", g, err)
	}
	if _, err := s.Graph(nil); err == nil || err.Error() != "test:1:30: topology.file: topology.txt: files cannot be read here" {
		t.Error(err)
	}
	s = mustParse(t, []byte("topology: {kind: file, file: other}"))
	if _, err := s.Graph(open); err == nil || err.Error() != "test:1:30: topology.file: no such file" {
		t.Error(err)
	}
}

// What the graph does not have is one line, with the place of the key.
func TestCheckErrors(t *testing.T) {
	const leafs = "topology: {kind: spine-leaf, leaves: 2, spines: 2, hosts_per_leaf: 2}\n"
	for _, c := range []struct{ in, want string }{
		{"workload: [{kind: long, src: host9, dst: host1}]", `workload[0].src: there is no node "host9"; did you mean host0?`},
		{"workload: [{kind: long, src: hosst1, dst: host1}]", `workload[0].src: there is no node "hosst1"; did you mean host1?`},
		{"workload: [{kind: long, src: leaf0, dst: host1}]", `workload[0].src: leaf0 is a switch, not a host`},
		{"workload: [{kind: long, src: host0/eth1, dst: host1}]", `workload[0].src: host0 has no port "eth1"; it has eth0 to eth0`},
		{"workload: [{kind: long, src: host0..host7, dst: host1}]", `workload[0].src: there is no node "host4"; did you mean host0?`},
		{"workload: [{kind: long, src: 'gpu*', dst: host1}]", `workload[0].src: no host is named like "gpu*"`},
		{"workload: [{kind: long, src: host1, dst: host1}]", `workload[0].dst: host1 sends to itself`},
		{"workload: [{kind: long, src: [host0, host1], dst: [host2, host1]}]", `workload[0].dst: host1 sends to itself`},
		{"workload: [{kind: incast, src: host1, dst: host1, bytes: 1KB}]", `workload[0].dst: host1 sends to itself`},
		{"workload: [{kind: permutation, hosts: host1, bytes: 1KB}]", `workload[0].hosts: 1 NIC; permutation needs two or more`},
		{"workload: [{kind: all-to-all, hosts: [host1, host0..1], bytes: 1KB}]", `workload[0].hosts: host1 is named twice`},
		{"workload: [{kind: permutation, hosts: [host0..2], cross_leaf: true, bytes: 1KB}]", `workload[0].cross_leaf: 2 of 3 hosts are on one leaf: not all can have a partner on another`},
		{"workload: [{kind: flows, list: [{src: host0, dst: nobody, bytes: 1KB}]}]", `workload[0].list[0].dst: there is no node "nobody"`},
		{"workload: [{kind: flows, list: [{src: host0, dst: host0, bytes: 1KB}]}]", `workload[0].list[0].dst: host0 sends to itself`},
		{"faults: [{kind: link-down, where: leaf0-spine7}]", `faults[0].where: there is no node "leaf0-spine7"`},
		{"faults: [{kind: link-down, where: leaf0-leaf1}]", `faults[0].where: no link joins leaf0 and leaf1`},
		{"faults: [{kind: link-down, where: leaf0}]", `faults[0].where: leaf0 has 4 links; name one, as in leaf0/Ethernet0`},
		{"faults: [{kind: storm, where: leaf0}]", `faults[0].where: leaf0 is a switch, not a host`},
		{"faults: [{kind: storm, where: 'host*'}]", `faults[0].where: "host*" names 4 hosts; give one`},
		{"record: {pcap: leaf0/Ethernet9}", `record.pcap: leaf0 has no port "Ethernet9"; it has Ethernet0 to Ethernet3`},
		{"record: {flows: incasst}\nworkload: [{kind: incast, src: all, dst: host0, bytes: 1KB}]", `record.flows: there is no workload "incasst"; did you mean incast?`},
		{"switches: [{match: leaf9, trust: pcp}]", `switches[0].match: there is no switch "leaf9"; did you mean leaf0?`},
		{"switches: [{match: host0, trust: pcp}]", `switches[0].match: there is no switch "host0"; did you mean host0?`},
		{"hosts: [{match: 'gpu*', roce: v1}]", `hosts[0].match: there is no host "gpu*"`},
		{"switches: [{match: 'leaf*', ecn: {kmin: 2MB}}]", `switches[0].ecn.kmin: 2MB is above kmax, 1.6MB`},
		{"switches: [{match: 'leaf*', ecn: {kmax: 3MB}}, {match: leaf1, ecn: {kmin: 4MB}}]", `switches[1].ecn.kmin: 4MB is above kmax, 3MB`},
		{"hosts: [{match: host0, roce: v1}]\nworkload: [{kind: long, src: host0, dst: host1}]", `workload[0].dst: host0 speaks RoCEv1 and host1 RoCEv2`},
	} {
		s, err := Parse("f", []byte(leafs+c.in))
		if err == nil {
			var g *topo.Graph
			if g, err = s.Graph(nil); err == nil {
				err = s.Check(g)
			}
		}
		if err == nil {
			t.Errorf("%s\n  taken, want %s", c.in, c.want)
			continue
		}
		// The place is checked by its form: the line of the case, some column.
		place, got, _ := strings.Cut(err.Error(), ": ")
		if got != c.want || !strings.HasPrefix(place, "f:2:") && !strings.HasPrefix(place, "f:3:") {
			t.Errorf("%s\n got %v\nwant f:2:...: %s", c.in, err, c.want)
		}
	}
	for _, c := range []struct{ in, want string }{
		{"routes: [{switch: leaf9, to: host0, via: spine0}]", `topology.routes[0].switch: there is no switch "leaf9"; did you mean leaf0?`},
		{"routes: [{switch: leaf0, to: host3, via: host3}]", `topology.routes[0].via: leaf0 has no port or neighbour "host3"`},
		{"routes: [{switch: leaf0, to: spine0, via: spine0}]", `topology.routes[0].to: no host hangs on spine0`},
		{"routes: [{switch: leaf0, to: host8, via: spine0}]", `topology.routes[0].to: there is no node "host8"; did you mean host0?`},
		{"routes: [{switch: leaf0, via: spine0}]", `topology.routes[0].to: missing`},
	} {
		s, err := Parse("f", []byte(strings.TrimSuffix(leafs, "}\n")+", "+c.in+"}"))
		if err == nil {
			_, err = s.Graph(nil)
		}
		if err == nil || !strings.HasSuffix(err.Error(), ": "+c.want) {
			t.Errorf("%s\n got %v\nwant %s", c.in, err, c.want)
		}
	}
}

// A selection means the NICs that its text says.
func TestSelections(t *testing.T) {
	_, g := graphOf(t, "topology: {kind: star, hosts: 12, nics: 2}")
	n := newNames(g)
	for _, c := range []struct {
		sel   Select
		every bool
		want  []int32
	}{
		{Select{"host3"}, false, []int32{6}},
		{Select{"host3"}, true, []int32{6, 7}},
		{Select{"host3/eth1", "host0"}, false, []int32{7, 0}},
		{Select{"host1..host3"}, false, []int32{2, 4, 6}},
		{Select{"host9..11"}, false, []int32{18, 20, 22}},
		{Select{"host1?"}, false, []int32{20, 22}},
		{Select{"host0/*"}, false, []int32{0, 1}},
		{Select{"all"}, true, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
		{nil, false, nil},
	} {
		got, err := n.endpoints(c.sel, c.every)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %v %v, want %v", c.sel, got, err, c.want)
		}
	}
	for _, c := range []struct {
		sel  Select
		name string
		want bool
	}{
		{Select{"leaf*"}, "leaf3", true},
		{Select{"leaf*"}, "spine3", false},
		{Select{"leaf2..4"}, "leaf4", true},
		{Select{"leaf2..4"}, "leaf5", false},
		{Select{"leaf2..4"}, "leaf", false},
		{Select{"all"}, "x", true},
		{Select{"a", "b"}, "b", true},
		{nil, "b", false},
	} {
		if got := c.sel.Matches(c.name); got != c.want {
			t.Errorf("%v %s: %v", c.sel, c.name, got)
		}
	}
}
