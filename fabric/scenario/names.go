package scenario

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/topo"
)

// Span reads a range of names, host8..host23 or host8..23: the first and last
// number and what stands before them. ok is false for every other text.
func Span(s string) (lo, hi int64, prefix string, ok bool) {
	a, b, found := strings.Cut(s, "..")
	if !found {
		return 0, 0, "", false
	}
	prefix = strings.TrimRight(a, "0123456789")
	lo, ok = numbered(a, prefix)
	if !ok {
		return 0, 0, "", false
	}
	if hi, ok = numbered(b, prefix); !ok {
		hi, ok = numbered(b, "")
	}
	return lo, hi, prefix, ok && hi >= lo
}

// numbered reads the number behind a prefix.
func numbered(s, prefix string) (int64, bool) {
	digits, ok := strings.CutPrefix(s, prefix)
	if !ok || digits == "" || len(digits) > 9 || strings.Trim(digits, "0123456789") != "" || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}

// maxEndpoints bounds what the selections of a file may name, repetitions and
// what patterns look at counted.
const maxEndpoints = 1 << 26

// names finds the nodes and ports of a graph by name.
type names struct {
	g    *topo.Graph
	node map[string]int32
	work int // endpoints looked at so far
}

func newNames(g *topo.Graph) *names {
	n := &names{g: g, node: make(map[string]int32, len(g.Nodes))}
	for i := range g.Nodes {
		n.node[g.Nodes[i].Name] = int32(i)
	}
	return n
}

// list returns the names of all nodes, in their order.
func (n *names) list() []string {
	all := make([]string, len(n.g.Nodes))
	for i := range n.g.Nodes {
		all[i] = n.g.Nodes[i].Name
	}
	return all
}

// port finds "leaf0/Ethernet3", "host3/eth1", or a node alone (port -1).
func (n *names) port(name string) (node, port int32, err error) {
	host, eth, found := strings.Cut(name, "/")
	node, ok := n.node[host]
	if !ok {
		if near := nearest(host, n.list()); near != "" {
			return 0, 0, fmt.Errorf("there is no node %q; did you mean %s?", clip(host), near)
		}
		return 0, 0, fmt.Errorf("there is no node %q", clip(host))
	}
	if !found {
		return node, -1, nil
	}
	count := int32(len(n.g.Nodes[node].Ports))
	for i := range count {
		if n.g.PortName(node, i) == eth {
			return node, i, nil
		}
	}
	return 0, 0, fmt.Errorf("%s has no port %q; it has %s to %s", host, clip(eth), n.g.PortName(node, 0), n.g.PortName(node, count-1))
}

// endpoints finds the NICs that a selection names, in its order. Where no NIC
// is named it is a host's first, or with every, each of them.
func (n *names) endpoints(sel Select, every bool) ([]int32, error) {
	var out []int32
	for _, s := range sel {
		before := len(out)
		var err error
		if out, err = n.expand(out, s, every); err != nil {
			return nil, err
		}
		if len(out) == before {
			return nil, fmt.Errorf("no host is named like %q", clip(s))
		}
		if n.work += len(out) - before; n.work > maxEndpoints {
			return nil, fmt.Errorf("the file names more than %d endpoints in all", maxEndpoints)
		}
	}
	return out, nil
}

func (n *names) expand(out []int32, s string, every bool) ([]int32, error) {
	if lo, hi, prefix, ok := Span(s); ok {
		for i := lo; i <= hi; i++ {
			var err error
			if out, err = n.one(out, prefix+strconv.FormatInt(i, 10), every); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	if literal(s) {
		return n.one(out, s, every)
	}
	if s == "all" {
		s = "*"
	}
	n.work += len(n.g.Endpoints)
	nic := strings.Contains(s, "/")
	for i := range n.g.Endpoints {
		e := &n.g.Endpoints[i]
		name := n.g.Nodes[e.Node].Name
		if nic {
			name += "/" + n.g.PortName(e.Node, e.Port)
		} else if e.Port != 0 && !every {
			continue
		}
		if ok, err := path.Match(s, name); err == nil && ok {
			out = append(out, int32(i))
		}
	}
	return out, nil
}

// one appends the endpoints of one host or NIC.
func (n *names) one(out []int32, name string, every bool) ([]int32, error) {
	node, port, err := n.port(name)
	if err != nil {
		return nil, err
	}
	h := &n.g.Nodes[node]
	if h.Kind != topo.Host {
		return nil, fmt.Errorf("%s is a switch, not a host", clip(name))
	}
	if port >= 0 || !every {
		return append(out, h.Endpoint+max(port, 0)), nil
	}
	for i := range h.Ports {
		out = append(out, h.Endpoint+int32(i))
	}
	return out, nil
}

// link finds the link of "leaf0-spine1", or at a port.
func (n *names) link(name string) error {
	if a, b, ok := n.ends(name); ok {
		for _, p := range n.g.Nodes[a].Ports {
			if p.Peer == b {
				return nil
			}
		}
		return fmt.Errorf("no link joins %s and %s", n.g.Nodes[a].Name, n.g.Nodes[b].Name)
	}
	node, port, err := n.port(name)
	if err != nil {
		return err
	}
	if port < 0 && len(n.g.Nodes[node].Ports) > 1 {
		return fmt.Errorf("%s has %d links; name one, as in %s/%s", clip(name), len(n.g.Nodes[node].Ports), clip(name), n.g.PortName(node, 0))
	}
	return nil
}

// ends cuts a link's name where both parts are nodes; names may have dashes too.
func (n *names) ends(s string) (a, b int32, ok bool) {
	for i := range len(s) {
		if s[i] != '-' {
			continue
		}
		a, found := n.node[s[:i]]
		b, other := n.node[s[i+1:]]
		if found && other {
			return a, b, true
		}
	}
	return 0, 0, false
}
