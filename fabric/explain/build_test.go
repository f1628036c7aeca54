package explain

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

var update = flag.Bool("update", false, "write testdata anew")

const (
	us = sim.Microsecond
	ms = sim.Millisecond
	g  = sim.Gbps
	kb = int64(1000)
	mb = int64(1000 * 1000)
)

// builder makes runs by hand. Frames are 1000 B + 48 B without gap, so that
// 2 MB take 2,000 * 1048 B * 8 / 100G = 167.68 us.
type builder struct {
	r result.Run
}

func newBuilder() *builder {
	b := &builder{}
	b.r.Name, b.r.Why, b.r.End = "test", "all flows finished", 10*ms
	b.r.Shape = result.Shape{Preset: "off", AckEvery: 16, Payload: 1000, Header: 48, Lossless: 1 << 3}
	return b
}

func (b *builder) node(name string, sw bool, tier int) int32 {
	b.r.Nodes = append(b.r.Nodes, result.Node{Name: name, Switch: sw, Tier: tier})
	return int32(len(b.r.Nodes) - 1)
}

// link joins two nodes and returns the number of a's port.
func (b *builder) link(a, c int32, rate sim.Rate) int32 {
	pa, pc := int32(len(b.r.Nodes[a].Ports)), int32(len(b.r.Nodes[c].Ports))
	name := func(n int32, p int32) string {
		if b.r.Nodes[n].Switch {
			return fmt.Sprintf("Ethernet%d", p)
		}
		return fmt.Sprintf("eth%d", p)
	}
	b.r.Nodes[a].Ports = append(b.r.Nodes[a].Ports, result.Port{Name: name(a, pa), Peer: c, PeerPort: pc, Rate: rate, Delay: us})
	b.r.Nodes[c].Ports = append(b.r.Nodes[c].Ports, result.Port{Name: name(c, pc), Peer: a, PeerPort: pa, Rate: rate, Delay: us})
	return pa
}

// fabric is a spine-leaf network: host h hangs on leaf h/per by port h%per,
// whose port per+s goes to spine s.
type fabric struct {
	*builder
	leaf, spine, host []int32
	per               int
}

func spineLeaf(leaves, spines, per int) *fabric {
	f := &fabric{builder: newBuilder(), per: per}
	for i := range leaves {
		f.leaf = append(f.leaf, f.node(fmt.Sprintf("leaf%d", i), true, 1))
	}
	for i := range spines {
		f.spine = append(f.spine, f.node(fmt.Sprintf("spine%d", i), true, 2))
	}
	for i := range leaves * per {
		f.host = append(f.host, f.node(fmt.Sprintf("host%d", i), false, 0))
		f.link(f.leaf[i/per], f.host[i], 100*g)
	}
	for _, l := range f.leaf {
		for _, s := range f.spine {
			f.link(l, s, 100*g)
		}
	}
	return f
}

// star is one switch with hosts.
func star(hosts int) *fabric { return spineLeaf(1, 0, hosts) }

func (f *fabric) port(n, p int32) *result.Port { return &f.r.Nodes[n].Ports[p] }

// path goes over a spine if it must.
func (f *fabric) path(src, dst, spine int) []result.Hop {
	a, b := f.leaf[src/f.per], f.leaf[dst/f.per]
	p := []result.Hop{{Node: f.host[src], Port: 0}}
	if a != b {
		p = append(p, result.Hop{Node: a, Port: int32(f.per + spine)}, result.Hop{Node: f.spine[spine], Port: f.down(dst / f.per)})
	}
	return append(p, result.Hop{Node: b, Port: int32(dst % f.per)})
}

// down is a spine's port to a leaf.
func (f *fabric) down(leaf int) int32 { return int32(leaf) }

// flow adds a finished flow in priority 3.
func (f *fabric) flow(group string, src, dst, spine int, bytes int64, start, fct sim.Time) *result.Flow {
	path := f.path(src, dst, spine)
	wire := bytes + (bytes+999)/1000*48
	base := (100 * g).For(int(wire))
	for range path {
		base += us + (100 * g).For(1048)
	}
	base -= (100 * g).For(1048)
	f.r.Flows = append(f.r.Flows, result.Flow{
		ID: int32(len(f.r.Flows)), Group: group, Src: int32(src), Dst: int32(dst), SrcNode: f.host[src], DstNode: f.host[dst], Bytes: bytes,
		Op: "write", Service: "rc", Prio: 3, State: result.Finished, Start: start, Received: start + fct, Finish: start + fct, Base: base,
		Delivered: bytes, Packets: uint64((bytes + 999) / 1000), Path: path, Paths: 1,
	})
	return &f.r.Flows[len(f.r.Flows)-1]
}

// stop records that node's port stopped its neighbour for d, for an egress of
// the node that was itself stopped or not.
func (f *fabric) stop(node, port, egress int32, stopped bool, at, d sim.Time) {
	f.r.Pauses = append(f.r.Pauses,
		result.Pause{At: at, Node: node, Port: port, Egress: egress, Held: 45200, Limit: 45000, Prio: 3, On: true, EgressStopped: stopped},
		result.Pause{At: at + d, Node: node, Port: port, Egress: egress, Held: 42000, Limit: 45000, Prio: 3})
	p := &f.port(node, port).Prio[3]
	p.PauseTx++
	p.ResumeTx++
	peer := f.port(node, port)
	q := &f.port(peer.Peer, peer.PeerPort).Prio[3]
	q.PauseRx++
	q.ResumeRx++
	q.PausedFor += d
	q.PausedWaiting += d
}

// sorted puts the pauses in order of time, as a run has them.
func (f *fabric) sorted() *result.Run {
	p := f.r.Pauses
	for i := 1; i < len(p); i++ {
		for j := i; j > 0 && p[j].At < p[j-1].At; j-- {
			p[j], p[j-1] = p[j-1], p[j]
		}
	}
	return &f.r
}

func golden(t *testing.T, name string, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

func text(t *testing.T, s *Story) string {
	t.Helper()
	var b bytes.Buffer
	if err := s.Text(&b, 100); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(b.String(), "\n") {
		if len([]rune(line)) > 100 {
			t.Errorf("line of %d columns: %s", len([]rune(line)), line)
		}
	}
	return b.String()
}
