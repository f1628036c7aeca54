package topo

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/verbena-rdma/verbena/fabric/topo/token"
)

// ReadHPCC reads the topology.txt of HPCC's simulator and its kin. Fields are
// separated by white space; what counts as the first line depends on whose it
// is:
//
//	nodes switches links                                     HPCC, ConWeave, ASTRA-sim
//	nodes switches ToRs links [rate rate]                    ns3-datacenter
//	nodes gpus_per_server nvswitches switches links gpu [n]  SimAI
//
// then the numbers of all switches (SimAI: NVSwitches first), then one link
// after the other: two nodes, rate, delay, share of packets lost. Rates and
// delays have ns-3's units: "100Gbps", "1000ns", "0.001ms"; none means bit/s
// and seconds.
//
// Nodes keep their numbers: node 7 of the file is node 7 of the graph, called
// host7 or sw7 (NVSwitches: nvsw7). Unlike HPCC's simulator, parallel links
// count, all of them. A host does not forward, and endpoints are its ports in
// the order of the links. name is the file's, for errors.
func ReadHPCC(r io.Reader, name string) (*Graph, error) {
	h := hpccReader{in: token.NewReader(r, name)}
	if err := h.header(); err != nil {
		return nil, err
	}
	if err := h.switches(); err != nil {
		return nil, err
	}
	if err := h.links(); err != nil {
		return nil, err
	}
	h.b.tiers()
	g, err := h.b.finish()
	if err != nil {
		return nil, h.in.FailFile("%s", err)
	}
	g.Name = fmt.Sprintf("%s, %d hosts", name, h.nodes-h.nv-h.sw)
	return g, nil
}

type hpccReader struct {
	in            *token.Reader
	nodes, nv, sw int
	count         int // links
	b             *builder
}

func (h *hpccReader) header() error {
	var f []token.Field
	first, ok := h.in.Next()
	for ; ok && len(f) < 8; first, ok = h.in.Next() {
		f = append(f, first)
		if !h.in.More() {
			break
		}
	}
	if err := h.in.Err(); err != nil {
		return err
	}
	if len(f) == 0 {
		return h.in.FailFile("is empty: the first line gives the numbers of nodes, switches and links")
	}
	gpu := len(f) == 6 || len(f) == 7
	if gpu && f[5].Text[0] >= '0' && f[5].Text[0] <= '9' {
		gpu = false
	}
	var nv, sw, links int // places of the fields
	switch {
	case gpu:
		nv, sw, links = 2, 3, 4
	case len(f) == 3:
		nv, sw, links = -1, 1, 2
	case len(f) == 4, len(f) == 6:
		nv, sw, links = -1, 1, 3
	default:
		return h.in.Fail(f[0], "the first line has %d fields: 3 (nodes switches links), 4 or 6 (nodes switches ToRs links "+
			"[rate rate]) or 6 (nodes gpus_per_server nvswitches switches links gpu) are known", len(f))
	}
	n, err := h.in.Int(f[0], "number of nodes", 1, MaxNodes)
	if err != nil {
		return err
	}
	h.nodes = int(n)
	if nv >= 0 {
		if n, err = h.in.Int(f[nv], "number of NVSwitches", 0, n); err != nil {
			return err
		}
		h.nv = int(n)
	}
	if n, err = h.in.Int(f[sw], "number of switches", 0, int64(h.nodes-h.nv)); err != nil {
		return err
	}
	h.sw = int(n)
	if n, err = h.in.Int(f[links], "number of links", 1, MaxLinks); err != nil {
		return err
	}
	h.count = int(n)
	if 2*h.count < h.nodes {
		return h.in.Fail(f[links], "%d links are too few to give each of %d nodes one", h.count, h.nodes)
	}
	return nil
}

func (h *hpccReader) switches() error {
	const nvSwitch, sw = 1, 2
	kind := make([]uint8, h.nodes)
	for i := range h.nv + h.sw {
		f, ok := h.in.Next()
		if !ok {
			return h.short("switches", h.nv+h.sw, i)
		}
		n, err := h.in.Int(f, "number of a switch", 0, int64(h.nodes-1))
		if err != nil {
			return err
		}
		if kind[n] != 0 {
			return h.in.Fail(f, "switch %d is listed twice", n)
		}
		kind[n] = sw
		if i < h.nv {
			kind[n] = nvSwitch
		}
	}
	h.b = newBuilder("", h.nodes, min(h.count, 1<<16))
	for i, k := range kind {
		switch k {
		case nvSwitch:
			h.b.sw("nvsw", i, 0, 0, 0)
		case sw:
			h.b.sw("sw", i, 0, 0, 0)
		default:
			h.b.host(i, 0, 1)
		}
	}
	return nil
}

func (h *hpccReader) links() error {
	for i := range h.count {
		a, _, err := h.end(i)
		if err != nil {
			return err
		}
		b, at, err := h.end(i)
		if err != nil {
			return err
		}
		if a == b {
			return h.in.Fail(at, "node %d is joined to itself", a)
		}
		f, ok := h.in.Next()
		if !ok {
			return h.short("links", h.count, i)
		}
		rate, err := h.in.Rate(f, "rate", MaxRate)
		if err != nil {
			return err
		}
		if f, ok = h.in.Next(); !ok {
			return h.short("links", h.count, i)
		}
		delay, err := h.in.Time(f, "delay", MaxDelay)
		if err != nil {
			return err
		}
		if f, ok = h.in.Next(); !ok {
			return h.short("links", h.count, i)
		}
		lost, err := h.in.Share(f, "error rate")
		if err != nil {
			return err
		}
		h.b.link(int32(a), int32(b), rate, delay).ErrorRate = lost
	}
	if f, ok := h.in.Next(); ok {
		return h.in.Fail(f, "text after the last of %d links", h.count)
	}
	return h.in.Err()
}

// end reads a node at the end of link i.
func (h *hpccReader) end(i int) (n int64, f token.Field, err error) {
	f, ok := h.in.Next()
	if !ok {
		return 0, f, h.short("links", h.count, i)
	}
	if n, err = h.in.Int(f, "node", 0, int64(h.nodes-1)); err != nil {
		return 0, f, err
	}
	most := MaxPorts
	if h.b.g.Nodes[n].Kind == Host {
		most = MaxHostPorts
	}
	if len(h.b.g.Nodes[n].Ports) == most {
		return 0, f, h.in.Fail(f, "%s %d has more than %d links", h.b.g.Nodes[n].Kind, n, most)
	}
	return n, f, nil
}

func (h *hpccReader) short(what string, want, have int) error {
	if err := h.in.Err(); err != nil {
		return err
	}
	return h.in.FailEnd("the file ends after %d of %d %s", have, want, what)
}

// WriteHPCC writes a graph as HPCC's topology.txt. What that cannot say (names,
// tiers, static routes) is lost; ns-3 rounds delays to nanoseconds.
func WriteHPCC(w io.Writer, g *Graph) error {
	out := hpccWriter{w: w}
	switches := len(g.Nodes) - g.Hosts()
	out.printf("%d %d %d\n", len(g.Nodes), switches, len(g.Links))
	sep := ""
	for i := range g.Nodes {
		if g.Nodes[i].Kind == Switch {
			out.printf("%s%d", sep, i)
			sep = " "
		}
	}
	out.printf("\n")
	for i := range g.Links {
		l := &g.Links[i]
		rate, unit := int64(l.Rate), "bps"
		if rate%1e9 == 0 {
			rate, unit = rate/1e9, "Gbps"
		}
		delay, unitT := int64(l.Delay), "ps"
		if delay%1000 == 0 {
			delay, unitT = delay/1000, "ns"
		}
		// Exact: a multiple of 2^-32 has a short float.
		lost := strconv.FormatFloat(float64(l.ErrorRate)/(1<<32), 'g', -1, 64)
		out.printf("%d %d %d%s %d%s %s\n", l.A, l.B, rate, unit, delay, unitT, lost)
	}
	return errors.Join(out.err, out.flush())
}

// hpccWriter gathers text into large writes and keeps the first error.
type hpccWriter struct {
	w   io.Writer
	buf []byte
	err error
}

func (o *hpccWriter) printf(format string, args ...any) {
	o.buf = fmt.Appendf(o.buf, format, args...)
	if len(o.buf) > 1<<15 {
		if err := o.flush(); o.err == nil {
			o.err = err
		}
	}
}

func (o *hpccWriter) flush() error {
	if o.err != nil || len(o.buf) == 0 {
		return nil
	}
	_, err := o.w.Write(o.buf)
	o.buf = o.buf[:0]
	return err
}
