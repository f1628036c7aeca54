package doctor_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/diag/counter"
	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// leaf is a reading of a snapshot that can be taken away and put back.
type leaf struct {
	name string
	set  func(absent bool)
}

// leaves lists the readings of a value: each snapshot.Value, each entry of a map of
// readings, and the lists that are nil where nobody has recorded them.
func leaves(name string, v reflect.Value) []leaf {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		old := v.Interface()
		return append(leaves(name, v.Elem()), leaf{name, func(absent bool) {
			if absent {
				v.SetZero()
			} else {
				v.Set(reflect.ValueOf(old))
			}
		}})
	case reflect.Struct:
		if zero := v.Addr().MethodByName("IsZero"); zero.IsValid() && v.Type() != reflect.TypeFor[time.Time]() {
			old := reflect.New(v.Type()).Elem()
			old.Set(v)
			if zero.Call(nil)[0].Bool() {
				return nil
			}
			return []leaf{{name, func(absent bool) {
				if absent {
					v.SetZero()
				} else {
					v.Set(old)
				}
			}}}
		}
		var out []leaf
		if c, ok := v.Addr().Interface().(*snapshot.Counter); ok {
			return leaves(name+c.Name, v.FieldByName("Value"))
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out = append(out, leaves(name+"."+v.Type().Field(i).Name, v.Field(i))...)
			}
		}
		return out
	case reflect.Slice:
		var out []leaf
		if field := name[strings.LastIndexByte(name, '.')+1:]; slices.Contains([]string{"Addresses", "HugePages", "NICs", "Queues"}, field) {
			old := v.Slice(0, v.Len())
			return []leaf{{name, func(absent bool) {
				if absent {
					v.SetZero()
				} else {
					v.Set(old)
				}
			}}}
		}
		// The first of several is what the rows are about.
		for i := range v.Len() {
			if v.Index(i).Kind() == reflect.Struct && (i == 0 || !slices.Contains([]reflect.Type{reflect.TypeFor[[]snapshot.Device](), reflect.TypeFor[[]snapshot.Netdev]()}, v.Type())) {
				out = append(out, leaves(fmt.Sprintf("%s[%d]", name, i), v.Index(i))...)
			}
		}
		return out
	case reflect.Map:
		// A variable that a process does not have is known not to be set.
		if v.Type() == reflect.TypeFor[map[string]string]() {
			return nil
		}
		var out []leaf
		for _, k := range v.MapKeys() {
			old := v.MapIndex(k)
			out = append(out, leaf{fmt.Sprintf("%s[%v]", name, k), func(absent bool) {
				if absent {
					v.SetMapIndex(k, reflect.Value{})
				} else {
					v.SetMapIndex(k, old)
				}
			}})
		}
		return out
	default:
		return nil
	}
}

// relevant reports whether a rule may read something; it saves most of the time. Peers
// are for rules that speak of them, and what was before matters for what rises.
func relevant(r *doctor.Rule, name string) bool {
	text := r.When + strings.Join(slices.Concat(r.Fail, r.Warn, r.Info), " ")
	for _, l := range r.Let {
		text += " " + l.Expr
	}
	side, _, _ := strings.Cut(name, ".")
	if strings.HasPrefix(side, "peer") && !strings.Contains(text, "peer") {
		return false
	}
	if strings.HasSuffix(side, "before") && !strings.Contains(name, "Counters") && !strings.Contains(name, "Ethtool") && !strings.Contains(name, "SNMP") &&
		!strings.Contains(name, "QPs") && !strings.Contains(name, "Carrier") && !strings.Contains(name, "Switch") && !strings.Contains(name, "DCB") {
		return false
	}
	_, raw, isCounter := strings.Cut(name, "]")
	if !isCounter || !strings.Contains(name, "Counters[") && !strings.Contains(name, "Ethtool[") {
		return true
	}
	raw = raw[strings.LastIndexByte(raw, ']')+1:]
	canonical, _ := counter.Canonical(counter.MLX5, raw)
	if strings.Contains(text, raw) || canonical != "" && strings.Contains(text, string(canonical)) || canonical != "" && strings.Contains(text, "all_zero") {
		return true
	}
	for word, part := range map[string]string{"pause": "_pause", "discards_prio": "discard", "byte_share": "_bytes", "prio_share": "_bytes", "rxq": "_packets"} {
		if strings.Contains(text, word) && strings.Contains(raw, part) {
			return true
		}
	}
	return false
}

// mayPass are rules that pass without a reading that has made them fire, and why.
var mayPass = map[string]string{
	"N13 after.App.TrafficClass":      "the queue pair has a traffic class too",
	"N13 after.App":                   "the queue pair has a traffic class too",
	"L17 after.App.GIDIndex":          "the environment says it",
	"N10 after.Netdevs[0].Master":     "an interface that was read whole and has no master is in no bond",
	"L26 after.Devices[0].PCI.Vendor": "a link to the physical function would say it too",
	"L26 after.Devices[0].PCI.Device": "a link to the physical function would say it too",
	"L25 after.Netdevs[0].VLAN":       "an interface that was read whole and has no VLAN number is no VLAN",
	"L04 after.Netdevs[0].DCB.Trust":  "entries by DSCP in the application table say the same",
	"L05 after.App.TrafficClass":      "the queue pair has a traffic class too",
	"L05 after.App":                   "the queue pair has a traffic class too",
	"L14 after.App.GIDIndex":          "the queue pair has a GID index too",
	"L14 after.App":                   "the queue pair has a GID index too",
	"L16 peer.App.GIDIndex":           "the queue pair has a GID index too",
	"L16 peer.App":                    "the queue pair has a GID index too",
	"C22 peer.Devices[0].Ports[0].HWCounters[16]req_remote_access_errors":        "it is about all counters that there are",
	"C22 peer before.Devices[0].Ports[0].HWCounters[16]req_remote_access_errors": "it is about all counters that there are",
}

// A rule that fires never passes when something that it has read is taken away: it
// fires by something else, or says SKIP. At least one reading makes each row say SKIP,
// or takes away the thing itself.
func TestAbsenceIsNoPass(t *testing.T) {
	for part := range absenceParts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			absenceIsNoPass(t, part)
		})
	}
}

// absenceParts is how many tests share the rows.
const absenceParts = 4

func absenceIsNoPass(t *testing.T, part int) {
	rules := builtin(t)
	for i := part; i < len(rows); i += absenceParts {
		row := &rows[i]
		r := row.find(rules)
		if r == nil {
			continue
		}
		w := newWorld()
		row.set(w, row.at)
		skips := 0
		for _, side := range []struct {
			name string
			host **snapshot.Snapshot
		}{{"before", &w.before}, {"after", &w.after}, {"peer before", &w.peerBefore}, {"peer", &w.peerAfter}} {
			for _, l := range leaves(side.name, reflect.ValueOf(*side.host).Elem()) {
				if !relevant(r, l.name) {
					continue
				}
				l.set(true)
				f := judge(w, r)
				l.set(false)
				switch {
				case f.Status == doctor.Skip && f.Missing == "":
					t.Errorf("row %d, %s without %s: SKIP and no reason", i, row.rule, l.name)
				case f.Status == doctor.Skip, f.Status == "none":
					skips++
				case f.Status == doctor.Pass && mayPass[r.ID+" "+l.name] == "":
					t.Errorf("row %d, %s passes without %s", i, row.rule, l.name)
				}
			}
		}
		if f := judge(w, r); f.Status != row.want {
			t.Fatalf("row %d, %s: %s after all was put back", i, row.rule, f.Status)
		}
		// These are about all counters that there are, or about lists without readings.
		exempt := slices.Contains([]string{"C22", "L24", "N10", "P13"}, r.ID) || r.ID == "C23" && row.want == doctor.Warn
		if skips == 0 && !exempt {
			t.Errorf("row %d, %s %s: nothing that is taken away makes it SKIP", i, row.rule, row.want)
		}
	}
}

// What is not known is not held against a host: whatever single thing is taken away
// from the good host, no rule finds anything.
func TestAbsenceIsNoFinding(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	w := newWorld()
	for _, side := range []struct {
		name string
		host *snapshot.Snapshot
	}{{"before", w.before}, {"after", w.after}, {"peer", w.peerAfter}} {
		for _, l := range leaves(side.name, reflect.ValueOf(side.host).Elem()) {
			if strings.Contains(l.name, "Counters[") || strings.Contains(l.name, "Ethtool[") || side.name == "before" && !relevant(rules[0], l.name) {
				continue
			}
			l.set(true)
			r := doctor.Examine(w.input(), rules)
			if len(r.Faults) > 0 {
				t.Errorf("without %s: %+v", l.name, r.Faults)
			}
			for _, f := range r.Findings {
				t.Errorf("without %s: %s %s at %s by %s", l.name, f.Status, f.Rule, f.Where, f.Condition)
			}
			l.set(false)
		}
	}
}

// Where the list of devices could not be read, nobody says that there are none.
func TestUnreadableDevicesAreNotZero(t *testing.T) {
	for _, r := range builtin(t) {
		if r.ID != "P01" && r.ID != "P13" {
			continue
		}
		w := newWorld()
		w.after.Devices, w.after.Switch = nil, nil
		w.after.NICs[0].RDMA = nil
		w.after.Problems = []snapshot.Problem{{Place: "sys/class/infiniband", Why: "permission denied"}}
		if f := judge(w, r); f.Status != doctor.Skip || !strings.Contains(f.Missing, "permission denied") {
			t.Errorf("%s: %s %s, want SKIP and why", r.ID, f.Status, f.Missing)
		}
	}
}
