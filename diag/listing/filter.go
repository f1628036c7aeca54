package listing

import (
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// subject gives the value of an object for a filter: a number, or a word if it is not
// empty, and whether the object has it.
type subject func(key string) (uint64, string, bool)

// filters are those of rdma resource show; all of them must let an object through.
type filters struct {
	device *snapshot.Device
	port   int // -1 for all
	all    []filter
}

type filter struct {
	key    string
	words  []string    // without regard to case
	ranges [][2]uint64 // of numbers
}

// filterNames are the filters of each kind of object; those with an exclamation mark
// compare words. Filters of the original that let everything through have none.
var filterNames = map[string][]string{
	"qp":      {"lqpn", "rqpn", "rq-psn", "sq-psn", "path-mig-state!", "type!", "state!", "pid", "pdn"},
	"cm_id":   {"lqpn", "qp-type!", "state!", "ps!", "pid", "src-addr!", "src-port", "dst-addr!", "dst-port", "cm-idn", "dev-type!", "transport-type!"},
	"cq":      {"cqn", "users", "poll-ctx!", "pid", "ctxn"},
	"mr":      {"rkey", "lkey", "mrn", "mrlen", "pid", "pdn"},
	"pd":      {"users", "pid", "ctxn", "pdn"},
	"ctx":     {"ctxn", "pid"},
	"counter": {"cntn", "lqpn", "pid", "qp-type!"},
	"srq":     {"srqn", "type!", "pid", "pdn", "cqn", "lqpn"},
}

// filters reads pairs of name and value.
func (c *rdmaCommand) filters(kind string, args []string) (*filters, error) {
	f := &filters{port: -1}
	onLink := kind == "qp" || kind == "cm_id" || kind == "counter"
	for len(args) > 0 {
		name := args[0]
		if len(args) == 1 {
			return nil, fail(1, "No filter data was supplied to filter option %s", name)
		}
		value := args[1]
		args = args[2:]
		switch {
		case name == "link" && onLink, name == "dev" && kind == "cm_id":
			d, port, err := c.link(value, true)
			if err != nil {
				return nil, err
			}
			f.device, f.port = d, port
			continue
		case name == "dev" && !onLink:
			d := c.s.Device(value)
			if d == nil {
				return nil, fail(1, "Wrong device name - %s", value)
			}
			f.device = d
			continue
		}
		one, err := readFilter(kind, name, value)
		if err != nil {
			return nil, err
		}
		if !slices.Contains([]string{"dev-type", "transport-type", "rkey", "lkey"}, one.key) { // as the original, which has them and no more
			f.all = append(f.all, one)
		}
	}
	return f, nil
}

func readFilter(kind, name, value string) (filter, error) {
	names := filterNames[kind]
	if slices.Contains(names, name+"!") {
		return filter{key: name, words: strings.Split(value, ",")}, nil
	}
	if !slices.Contains(names, name) {
		return filter{}, fail(1, "Unsupported filter option: %s", name)
	}
	if strings.Trim(value, "1234567890,-") != "" {
		return filter{}, fail(1, `%s filter accepts "1234567890,-" characters only`, name)
	}
	f := filter{key: name}
	for part := range strings.SplitSeq(value, ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := strconv.ParseUint(from, 10, 64)
		if err != nil {
			continue
		}
		b := a
		if isRange && to != "" {
			if b, err = strconv.ParseUint(to, 10, 64); err != nil {
				continue
			}
		}
		f.ranges = append(f.ranges, [2]uint64{a, b})
	}
	return f, nil
}

func (f *filters) pass(s subject) bool {
	for _, one := range f.all {
		n, w, ok := s(one.key)
		if !ok && one.key == "path-mig-state" { // as the original: what has none is taken for the first
			w, ok = "MIGRATED", true
		}
		if !ok || !one.pass(n, w) {
			return false
		}
	}
	return true
}

func (f *filter) pass(n uint64, w string) bool {
	for _, x := range f.words {
		if strings.EqualFold(x, w) {
			return true
		}
	}
	for _, r := range f.ranges {
		if n >= r[0] && n <= r[1] {
			return true
		}
	}
	return false
}
