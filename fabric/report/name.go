package report

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/verbena-rdma/verbena/fabric/result"
)

// names finds what things of a run are called. Numbers outside the run give a
// name that says so: a report of a damaged run is better than none.
type names struct{ r *result.Run }

// node returns the name of a node.
func (n names) node(i int32) string {
	if i < 0 || int(i) >= len(n.r.Nodes) {
		return "node " + strconv.Itoa(int(i))
	}
	if s := n.r.Nodes[i].Name; s != "" {
		return clean(s)
	}
	return "node " + strconv.Itoa(int(i))
}

// port returns the name of a port behind its node's.
func (n names) port(node, port int32) string {
	if p := at(n.r, node, port); p != nil && p.Name != "" {
		return n.node(node) + ":" + clean(p.Name)
	}
	return n.node(node) + ":" + strconv.Itoa(int(port))
}

// flow returns the number of a flow and its ends.
func (n names) flow(i int32) string {
	if i < 0 || int(i) >= len(n.r.Flows) {
		return "flow " + strconv.Itoa(int(i))
	}
	f := &n.r.Flows[i]
	s := "flow " + strconv.Itoa(int(f.ID))
	if f.Group != "" {
		s = clean(f.Group) + " " + strconv.Itoa(int(f.ID))
	}
	return s + " " + n.node(f.SrcNode) + ">" + n.node(f.DstNode)
}

// at returns a port, or nil if there is none of these numbers.
func at(r *result.Run, node, port int32) *result.Port {
	if node < 0 || int(node) >= len(r.Nodes) || port < 0 || int(port) >= len(r.Nodes[node].Ports) {
		return nil
	}
	return &r.Nodes[node].Ports[port]
}

// clean makes a name fit for one line of any output: control and format
// characters (line ends, escape sequences of terminals, changes of writing
// direction) and broken UTF-8 become U+FFFD.
func clean(s string) string {
	bad := func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }
	if strings.IndexFunc(s, bad) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if bad(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
