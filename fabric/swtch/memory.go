package swtch

import "github.com/verbena-rdma/verbena/fabric/sim"

// Memory is where the switches of one run have their parts, and what they share.
// What every packet touches is in large pieces: those begin at cache lines, which
// small ones with pointers do not, and what lies together costs fewer misses of
// the address translation. Configurations that are equal are one: all switches
// together look at a few lines. The zero Memory is ready.
type Memory struct {
	switches []Switch
	out      []egress
	in       []ingress
	rules    []*rules
	confs    []sharedConf
	alone    bool // for one switch: pieces have its size
}

// How many switches, and ports, a piece is made for: more than 32 KB of each.
const (
	switchPiece = 24
	portPiece   = 128
)

func (m *Memory) newSwitch() *Switch {
	if len(m.switches) == 0 {
		m.switches = make([]Switch, m.piece(1, switchPiece))
	}
	w := &m.switches[0]
	m.switches = m.switches[1:]
	return w
}

// ports returns what n ports need.
func (m *Memory) ports(n int) ([]egress, []ingress) {
	if len(m.out) < n {
		k := m.piece(n, portPiece)
		m.out, m.in = make([]egress, k), make([]ingress, 8*k)
	}
	out, in := m.out[:n:n], m.in[:8*n:8*n]
	m.out, m.in = m.out[n:], m.in[8*n:]
	return out, in
}

func (m *Memory) piece(n, usual int) int {
	if m.alone {
		return n
	}
	return max(n, usual)
}

// rules is what a switch does to every packet and has in common with all that are
// configured alike.
type rules struct {
	ofDSCP     [64]uint8
	ofPCP      [8]uint8
	toGroup    [8]uint8
	trust      Trust
	untagged   uint8
	fields     Fields // of ECMP
	router     bool
	cutThrough bool
	delays     bool // packets are in a line before their queue
	counts     bool // queues count what they hold
	latency    sim.Time
	subnets    []int32
}

func (m *Memory) rulesOf(c *Config) *rules {
	r := &rules{
		ofDSCP: c.DSCPToPrio, ofPCP: c.PCPToPrio, toGroup: c.PrioToGroup, trust: c.Trust, untagged: c.Untagged,
		fields: c.ECMP.Fields, router: c.Router, cutThrough: c.CutThrough, delays: c.CutThrough || c.Latency > 0, latency: c.Latency,
		subnets: c.Subnets,
	}
	r.counts = r.delays || c.Buffer.Cell > 1
	for _, o := range m.rules {
		if o.equal(r) {
			return o
		}
	}
	m.rules = append(m.rules, r)
	return r
}

func (r *rules) equal(o *rules) bool {
	return r.ofDSCP == o.ofDSCP && r.ofPCP == o.ofPCP && r.toGroup == o.toGroup && r.trust == o.trust && r.untagged == o.untagged &&
		r.fields == o.fields && r.router == o.router && r.cutThrough == o.cutThrough && r.counts == o.counts && r.latency == o.latency &&
		len(r.subnets) == len(o.subnets) && (len(r.subnets) == 0 || &r.subnets[0] == &o.subnets[0])
}

// confKey is what the switch adds to the configuration of a port.
type confKey struct {
	cell, quantum int
	groups        [8]uint8
}

type sharedConf struct {
	key  confKey
	port PortConfig
	conf *portConf
}

// maxSearch bounds the search where every port is another: it would be quadratic.
const maxSearch = 32

// confOf returns the configuration of a port of a switch.
func (m *Memory) confOf(c *Config, i int, k *confKey) *portConf {
	p := c.port(i)
	for n := len(m.confs) - 1; n >= max(0, len(m.confs)-maxSearch); n-- {
		if s := &m.confs[n]; s.key == *k && s.port == p {
			return s.conf
		}
	}
	m.confs = append(m.confs, sharedConf{*k, p, newConf(&p, k)})
	return m.confs[len(m.confs)-1].conf
}
