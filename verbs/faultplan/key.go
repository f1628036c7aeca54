package faultplan

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/wire"
)

// key is a key of a rule in a file.
type key struct {
	name string
	what string
	enum []string // the words it takes, where it takes words
	list bool     // takes one or several
	// set reads one value into the rule.
	set func(r *Rule, text string) error
}

// ruleKeys are all keys of a rule. They are never written.
var ruleKeys = []key{
	{name: "name", what: "what the report calls the rule", set: func(r *Rule, s string) error { r.Name = s; return nil }},
	{name: "inject", what: "what to do", enum: actionNames.names(), set: func(r *Rule, s string) error { return word(actionNames, s, &r.Action) }},
	{name: "call", what: "the call that is counted, and fails, is late, or kills", enum: callNames.names(), set: func(r *Rule, s string) error { return word(callNames, s, &r.Call) }},
	{name: "device", what: "name or address of the device; default: any", set: func(r *Rule, s string) error { r.Device = s; return nil }},
	{name: "direction", what: "of packets; default: in", enum: directionNames.names(), set: func(r *Rule, s string) error { return word(directionNames, s, &r.Direction) }},
	{name: "opcode", what: "kinds of packets, or of work requests and completions; a number is an opcode of the BTH", list: true, set: setOpcode},
	{name: "position", what: "place of the packet in its message", enum: posNames.names(), list: true, set: func(r *Rule, s string) error {
		var p fault.Pos
		err := word(posNames, s, &p)
		r.Pos |= p
		return err
	}},
	{name: "qp", what: "the n-th queue pair that the program makes on the device, from 1", set: func(r *Rule, s string) error {
		n, err := number(s, 1, 1<<24)
		r.QP = int(n)
		return err
	}},
	{name: "qpn", what: "destination QPN of packets, or queue pair number of calls", list: true, set: func(r *Rule, s string) error {
		n, err := number(s, 0, uint64(ib.MaxQPN))
		r.QPNs = append(r.QPNs, ib.QPN(n))
		return err
	}},
	{name: "psn", what: "a PSN or a range, as in 5 or 0x10..0x20", set: setPSN},
	{name: "peer", what: "the other host: an address or a prefix", list: true, set: func(r *Rule, s string) error {
		p, err := fault.ParsePeer(s)
		if err != nil {
			return fmt.Errorf("%s is no address and no prefix, as 10.0.0.2 or 10.0.0.0/24 are", quote(s))
		}
		r.Peers = append(r.Peers, p)
		return nil
	}},
	{name: "nth", what: "only the n-th that the selectors choose", set: func(r *Rule, s string) error { return count(s, &r.Nth) }},
	{name: "every", what: "every n-th of them", set: func(r *Rule, s string) error { return count(s, &r.Every) }},
	{name: "probability", what: "a part of them, by chance: 1% or 0.01", set: setProbability},
	{name: "after", what: "so many of them pass first, or so much time since the device was opened", set: func(r *Rule, s string) error {
		return countOrTime(s, &r.AfterCount, &r.AfterTime)
	}},
	{name: "for", what: "so many of them are looked at, or so long", set: func(r *Rule, s string) error {
		return countOrTime(s, &r.ForCount, &r.ForTime)
	}},
	{name: "count", what: "act so often at most", set: func(r *Rule, s string) error { return count(s, &r.Count) }},
	{name: "delay", what: "inject: delay: how long, as in 1ms; up to 1m", set: func(r *Rule, s string) error { return duration(s, &r.Delay) }},
	{name: "distance", what: "inject: reorder: how many packets overtake; default 3", set: func(r *Rule, s string) error {
		n, err := number(s, 1, 256)
		r.Distance = int(n)
		return err
	}},
	{name: "error", what: "inject: fail: what the call returns", enum: errnoNames.names(), set: func(r *Rule, s string) error { return word(errnoNames, s, &r.Errno) }},
	{name: "status", what: "inject: fail, call: poll: what the completion says", enum: statusNames.names(), set: func(r *Rule, s string) error { return word(statusNames, s, &r.Status) }},
	{name: "keep_qp", what: "inject: fail, call: poll: leave the queue pair in its state", enum: []string{"true", "false"}, set: func(r *Rule, s string) error {
		return word(words[bool]{{"true", true}, {"false", false}}, s, &r.KeepQP)
	}},
}

func ruleKeyNames() []string {
	var n []string
	for i := range ruleKeys {
		n = append(n, ruleKeys[i].name)
	}
	return n
}

func word[T comparable](w words[T], s string, to *T) error {
	v, ok := w.find(s)
	if !ok {
		return fmt.Errorf("%s; can be %s", quote(s), w.list())
	}
	*to = v
	return nil
}

// quote returns a value of a file for a message: short, in one line.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}

func number(s string, least, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s; must be a number from %d to %d", quote(s), least, most)
	}
	return n, nil
}

// maxCount keeps sums of counts from wrapping.
const maxCount = 1 << 62

func count(s string, to *uint64) (err error) {
	*to, err = number(s, 1, maxCount)
	return err
}

func duration(s string, to *time.Duration) error {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return fmt.Errorf("%s; must be a duration with its unit, as in 500us, 1ms or 2s", quote(s))
	}
	*to = d
	return nil
}

func countOrTime(s string, n *uint64, d *time.Duration) error {
	if count(s, n) != nil && duration(s, d) != nil {
		return fmt.Errorf("%s; must be a number from 1, or a duration with its unit, as in 500us, 1ms or 2s", quote(s))
	}
	return nil
}

func setOpcode(r *Rule, s string) error {
	if s == "recv" {
		r.Recv = true
		return nil
	}
	if k, ok := kindNames.find(s); ok {
		r.Kinds |= k
		return nil
	}
	n, err := strconv.ParseUint(s, 0, 8)
	if err != nil {
		return fmt.Errorf("%s; can be %s, recv, or a number from 0 to 0xff", quote(s), kindNames.list())
	}
	r.Opcodes = append(r.Opcodes, wire.Opcode(n))
	return nil
}

func setPSN(r *Rule, s string) error {
	from, to, ok := strings.Cut(s, "..")
	if !ok {
		to = from
	}
	a, err := number(from, 0, uint64(ib.PSNMask))
	b, err2 := number(to, 0, uint64(ib.PSNMask))
	if err != nil || err2 != nil {
		return fmt.Errorf("%s; must be a PSN or a range of PSNs from 0 to 0x%x, as in 5 or 0x10..0x20", quote(s), uint32(ib.PSNMask))
	}
	r.PSNs = &fault.PSNRange{From: ib.PSN(a), To: ib.PSN(b)}
	return nil
}

func setProbability(r *Rule, s string) error {
	digits, percent := strings.CutSuffix(s, "%")
	f, err := strconv.ParseFloat(digits, 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f > 0 && f <= 1) {
		return fmt.Errorf("%s; must be more than 0 and at most 1, or 100%%", quote(s))
	}
	r.Probability = f
	return nil
}

// sameDevice reports whether a rule is for the device of a name and an address.
func sameDevice(want, name string, addr netip.Addr) bool {
	if want == "" || want == name {
		return true
	}
	a, err := netip.ParseAddr(want)
	return err == nil && addr.IsValid() && a.Unmap() == addr.Unmap()
}
