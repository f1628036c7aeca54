package metric

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Unit is what a value counts.
type Unit uint8

// The units.
const (
	Number Unit = iota
	Bits        // bit/s
	Time        // picoseconds
	Bytes
)

// Value is one number.
type Value struct {
	V    float64
	Unit Unit
}

// String returns the number with its unit.
func (v Value) String() string {
	switch v.Unit {
	case Bits:
		return sim.Rate(v.V).String()
	case Time:
		return sim.Time(v.V).String()
	case Bytes:
		return strconv.FormatFloat(v.V, 'f', -1, 64) + " B"
	case Number:
	}
	return strconv.FormatFloat(v.V, 'f', -1, 64)
}

// Of reads a number off a result. The error names the part of the name that is
// not known.
func Of(r *result.Run, name string) (Value, error) {
	parts := strings.Split(name, ".")
	fail := func(format string, args ...any) (Value, error) {
		return Value{}, fmt.Errorf("metric %q: %s", name, fmt.Sprintf(format, args...))
	}
	var v Value
	var err error
	switch parts[0] {
	case "flow":
		if len(parts) < 3 {
			return fail("give a workload and a quantity, as in flow.long.goodput")
		}
		v, err = flow(r, parts[1], parts[2], parts[3:])
	case "queue", "port":
		v, err = port(r, parts)
	case "buffer":
		v, err = buffer(r, parts[1:])
	case "nic":
		v, err = nic(r, parts[1:])
	case "drops":
		v, err = drops(r, parts[1:])
	case "headroom":
		v, err = headroom(r, parts[1:])
	default:
		if len(parts) > 1 {
			return fail("unknown")
		}
		v, err = whole(r, parts[0])
	}
	if err != nil {
		return fail("%v", err)
	}
	return v, nil
}

func count[T ~int | ~uint64](n T) Value { return Value{V: float64(n)} }

// whole reads numbers of the run as a whole.
func whole(r *result.Run, name string) (Value, error) {
	sum := func(of func(f *result.Flow) uint64) Value {
		n := uint64(0)
		for i := range r.Flows {
			n += of(&r.Flows[i])
		}
		return count(n)
	}
	state := func(s result.FlowState) Value {
		n := 0
		for i := range r.Flows {
			if r.Flows[i].State == s {
				n++
			}
		}
		return count(n)
	}
	prios := func(of func(p *result.PortPrio) uint64) Value {
		n := uint64(0)
		for i := range r.Nodes {
			for j := range r.Nodes[i].Ports {
				for q := range r.Nodes[i].Ports[j].Prio {
					n += of(&r.Nodes[i].Ports[j].Prio[q])
				}
			}
		}
		return count(n)
	}
	switch name {
	case "pauses":
		return prios(func(p *result.PortPrio) uint64 { return p.PauseTx }), nil
	case "resumes":
		return prios(func(p *result.PortPrio) uint64 { return p.ResumeTx }), nil
	case "marks":
		return prios(func(p *result.PortPrio) uint64 { return p.Marked }), nil
	case "cnps":
		return sum(func(f *result.Flow) uint64 { return f.CNPs }), nil
	case "retransmitted":
		return sum(func(f *result.Flow) uint64 { return f.Retransmitted }), nil
	case "finished":
		return state(result.Finished), nil
	case "failed":
		return state(result.Failed), nil
	case "deadlocks":
		return count(len(r.Deadlocks)), nil
	case "storms":
		return count(len(r.Storms)), nil
	case "breaches":
		return count(len(r.Breaches)), nil
	case "hops":
		return count(r.DataHops), nil
	case "events":
		return count(r.Events), nil
	case "end":
		return Value{float64(r.End), Time}, nil
	}
	return Value{}, fmt.Errorf("unknown")
}

// drops reads how many packets were lost.
func drops(r *result.Run, rest []string) (Value, error) {
	all := len(rest) == 0
	n := uint64(0)
	if all {
		return count(uint64(len(r.Drops)) + r.DropsCut), nil
	}
	if len(rest) > 1 {
		return Value{}, fmt.Errorf("unknown reason %q", strings.Join(rest, "."))
	}
	if rest[0] == "lossless" {
		for i := range r.Lossless {
			n += r.Lossless[i].Dropped
		}
		return count(n), nil
	}
	known := false
	for d := range result.NumDropReasons {
		if key(d.String()) != rest[0] {
			continue
		}
		known = true
		for i := range r.Lost {
			if r.Lost[i].Name == d.String() {
				n += r.Lost[i].Value
			}
		}
	}
	if !known {
		return Value{}, fmt.Errorf("unknown reason %q", rest[0])
	}
	return count(n), nil
}

// key turns the name of a reason into what a metric calls it: "no buffer" is
// no_buffer.
func key(s string) string { return strings.ToLower(strings.ReplaceAll(s, " ", "_")) }

// headroom reads whether lossless classes had the room they needed.
func headroom(r *result.Run, rest []string) (Value, error) {
	if len(rest) != 1 {
		return Value{}, fmt.Errorf("give violated or used")
	}
	v := 0.0
	for i := range r.Lossless {
		l := &r.Lossless[i]
		switch rest[0] {
		case "violated":
			if l.Dropped > 0 {
				v = max(v, float64(max(l.Need-l.Have, 1)))
			}
		case "used":
			if l.Have > 0 {
				v = max(v, float64(l.Peak)/float64(l.Have))
			}
		default:
			return Value{}, fmt.Errorf("unknown %q", rest[0])
		}
	}
	if rest[0] == "violated" {
		return Value{v, Bytes}, nil
	}
	return Value{V: v}, nil
}
