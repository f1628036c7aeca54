package scenario

import (
	"fmt"
	"path"
	"strings"
)

// trafficKeys lists the keys of a workload that each kind uses, beside those
// that all use.
var trafficKeys = map[Traffic][]string{
	Incast:        {"src", "dst", "bytes", "every"},
	Permutation:   {"hosts", "bytes", "count", "every", "cross_leaf"},
	AllToAll:      {"hosts", "bytes", "count", "every", "cross_leaf"},
	AllReduceRing: {"hosts", "bytes", "count", "every", "chunks"},
	AllReduceTree: {"hosts", "bytes", "count", "every", "chunks"},
	Poisson:       {"hosts", "load", "cdf", "end", "count", "cross_leaf"},
	Bursts:        {"src", "dst", "bytes", "every", "count", "end"},
	Long:          {"src", "dst", "bytes", "every", "endless"},
	Flows:         {"list", "bytes", "endless"},
	Trace:         {"file", "format"},
}

var sharedTrafficKeys = []string{
	"name", "kind", "start", "jitter", "op", "service", "priority", "dscp", "qps", "src_port", "message", "rate", "after", "one_qp", "seed",
}

func (s *Scenario) checkWorkload() error {
	names := map[string]int{}
	for i := range s.Workload {
		w := &s.Workload[i]
		c := checks{s: s, within: []string{index("workload", i)}}
		c.checkTraffic(w)
		if j, ok := names[w.Name]; ok {
			c.fail("name", "%q is the name of workload[%d] already; give each its own", clip(w.Name), j)
		}
		if !goodName(w.Name) {
			c.fail("name", "%q is not a name of letters, digits, - and _", clip(w.Name))
		}
		names[w.Name] = i
		if c.err != nil {
			return c.err
		}
	}
	return s.checkAfter(names)
}

// checkAfter follows what waits for what.
func (s *Scenario) checkAfter(names map[string]int) error {
	const unseen, onPath, done = 0, 1, 2
	state := make([]uint8, len(s.Workload))
	for i := range s.Workload {
		var path []int
		for j := i; state[j] == unseen; {
			state[j] = onPath
			path = append(path, j)
			w := &s.Workload[j]
			if w.After == "" {
				break
			}
			c := checks{s: s, within: []string{index("workload", j)}}
			next, ok := names[w.After]
			if !ok {
				var all []string
				for k := range s.Workload {
					all = append(all, s.Workload[k].Name)
				}
				c.unknown("after", "workload", w.After, all)
				return c.err
			}
			if n := &s.Workload[next]; n.Endless || n.Kind == Long && n.Bytes == 0 {
				c.fail("after", "%s is endless, so nothing comes after it", clip(w.After))
			}
			if state[next] == onPath {
				c.fail("after", "%s waits for itself", clip(w.Name))
			}
			if c.err != nil {
				return c.err
			}
			j = next
		}
		for _, j := range path {
			state[j] = done
		}
	}
	return nil
}

func (c *checks) checkTraffic(w *Workload) {
	need := func(key string, missing bool, why string) {
		if missing {
			c.fail(key, "missing: %s", why)
		}
	}
	need("kind", w.Kind == "", "what traffic it is, as in incast, poisson, long")
	switch w.Kind {
	case Incast, Bursts, Long:
		need("src", len(w.Src) == 0, "the senders")
		need("dst", len(w.Dst) == 0, "the receivers")
		need("bytes", w.Bytes == 0 && w.Kind != Long, "the size of each flow, as in 1MB")
		need("every", w.Every == 0 && w.Kind == Bursts && w.Count != 1, "the time between bursts, as in 400us")
	case Permutation, AllToAll, AllReduceRing, AllReduceTree:
		need("bytes", w.Bytes == 0, "the size of each flow, as in 1MB")
	case Poisson:
		need("load", w.Load == 0, "the share of the hosts' rate, as in 50%")
		need("cdf", w.CDF == "", "the distribution of sizes, as in WebSearch")
	case Flows:
		need("list", len(w.List) == 0, "the flows")
		for i, f := range w.List {
			path := index("list", i)
			need(join(path, "src"), f.Src == "", "the sender")
			need(join(path, "dst"), f.Dst == "", "the receiver")
			need(join(path, "bytes"), f.Bytes == 0 && w.Bytes == 0, "the size of the flow, as in 1MB")
		}
	case Trace:
		need("file", w.File == "", "the trace")
	}
	for _, sel := range []struct {
		key  string
		list Select
	}{{"src", w.Src}, {"dst", w.Dst}, {"hosts", w.Hosts}} {
		for _, name := range sel.list {
			if err := badPattern(name); err != nil {
				c.fail(sel.key, "%s", err)
			}
		}
	}
	if w.Start > c.s.Duration {
		c.fail("start", "%s is after the end of the run, %s", TimeText(w.Start), TimeText(c.s.Duration))
	}
	service := w.Service
	if service == "" {
		service = c.s.Host.RDMA.Service
	}
	if w.Op == "read" && service != "rc" {
		c.fail("op", "read needs the service rc, not %s", service)
	}
	if w.Op == "write" && service == "ud" {
		c.fail("op", "write needs the service rc or uc, not ud")
	}
	if w.Op == "tcp" {
		for _, key := range []string{"service", "qps", "message", "one_qp", "rate"} {
			if c.given(key) {
				c.fail(key, "op is tcp, which has none")
			}
		}
	}
	if w.SrcPort != 0 && w.QPs > 1 {
		c.fail("src_port", "%d queue pairs would share the port; give qps: 1", w.QPs)
	}
}

// faultKeys lists the keys that each kind of fault uses, beside at, kind, where.
var faultKeys = map[FaultKind][]string{
	LinkDown:     {"for"},
	Flap:         {"for", "every", "count"},
	Errors:       {"for", "error_rate", "priorities"},
	Storm:        {"for", "priorities"},
	SlowReceiver: {"for", "rate"},
	DropNext:     {"count", "what", "priorities"},
	Reroute:      {},
}

func (s *Scenario) checkFaults() error {
	for i := range s.Faults {
		f := &s.Faults[i]
		c := checks{s: s, within: []string{index("faults", i)}}
		if f.Kind == "" {
			c.fail("kind", "missing: what goes wrong, as in link-down")
		}
		switch {
		case f.Kind == Reroute && f.Where != "":
			c.fail("where", "a reroute is everywhere")
		case f.Kind != Reroute && f.Where == "":
			c.fail("where", "missing: a link leaf0-spine1, a port leaf0/Ethernet3, or a host")
		}
		if f.At > s.Duration {
			c.fail("at", "%s is after the end of the run, %s", TimeText(f.At), TimeText(s.Duration))
		}
		switch f.Kind {
		case Flap:
			if f.For == 0 {
				c.fail("for", "missing: how long the link is down each time")
			}
			if f.Every <= f.For && f.Count > 1 {
				c.fail("every", "%s is not longer than for, %s: the link never comes up", TimeText(f.Every), TimeText(f.For))
			}
		case Errors:
			if f.ErrorRate == 0 {
				c.fail("error_rate", "missing: the share of frames that is corrupted")
			}
		case SlowReceiver:
			if f.Rate == 0 {
				c.fail("rate", "missing: what the host can take in, as in 10Gbps; a host that takes nothing is a storm")
			}
		case Storm:
			if f.Priorities == 0 {
				c.fail("priorities", "none: a storm that stops nothing")
			}
		case LinkDown, DropNext, Reroute:
		}
		for _, key := range s.unusedKeys(index("faults", i), []string{"at", "kind", "where"}, faultKeys[f.Kind]) {
			c.fail(key, "a %s has none", f.Kind)
		}
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// literal reports whether a text is a plain name.
func literal(s string) bool {
	return s != "all" && !strings.ContainsAny(s, `*?[\`) && !strings.Contains(s, "..")
}

// badPattern says why a text selects nothing whatever there is.
func badPattern(s string) error {
	if s == "" {
		return fmt.Errorf("an empty name")
	}
	if strings.Contains(s, "..") {
		if _, _, _, ok := Span(s); !ok {
			return fmt.Errorf("%q is not a range, as in host8..host23", clip(s))
		}
		return nil
	}
	if _, err := path.Match(s, ""); err != nil {
		return fmt.Errorf("%q is not a pattern, as in host*", clip(s))
	}
	return nil
}

// series are the names of what can be sampled, in the order of the result's kinds.
var series = [...]string{"queue", "port-rate", "flow-rate", "rc", "alpha", "marks", "cnps", "paused", "buffer", "host-queue"}

func isSeries(name string) bool {
	for _, s := range series {
		if s == name {
			return true
		}
	}
	return false
}

func seriesNames() string { return strings.Join(series[:], ", ") }
