package scenario

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

func readConfigDB(t *testing.T) (*SONiC, []byte) {
	t.Helper()
	data, err := os.ReadFile("testdata/config_db.json")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ReadSONiC("config_db.json", data)
	if err != nil {
		t.Fatal(err)
	}
	return c, data
}

func written(t *testing.T, c *SONiC) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Every table that a tuner has in hand is found again in the switch's settings.
func TestReadSONiC(t *testing.T) {
	c, data := readConfigDB(t)
	sw, warnings, err := c.Switch(Default().Switch)
	if err != nil {
		t.Fatal(err)
	}
	b := sw.Buffer
	want := Buffer{
		Preset: b.Preset, Cell: b.Cell, LossyAlpha: b.LossyAlpha,
		Total: 32689152, HeadroomPool: 2058240, Alpha: One / 8, XON: 18432, XONOffset: 3584,
		Reserved:    18432, // size 53248 counts the xoff of 34816
		Headroom:    Headroom{HeadroomBytes, 34816},
		EgressAlpha: 8 * One, EgressReserved: 1792,
		HeadroomByRate: []RateHeadroom{{400 * sim.Gbps, Headroom{HeadroomBytes, 164352}}},
	}
	if diff := cmp.Diff(want, b); diff != "" {
		t.Error(diff)
	}
	if sw.Trust != TrustDSCP || sw.DSCPMap[26] != 3 || sw.DSCPMap[48] != 6 || sw.DSCPMap[0] != 1 || sw.DSCPMap[8] != 0 ||
		sw.GroupMap != (PrioMap{0, 0, 0, 3, 4, 0, 0, 7}) || sw.PFC.Priorities != 0x18 {
		t.Errorf("%+v", sw)
	}
	if sw.ECN.Priorities != 0x18 || sw.ECN.KMin != 1<<20 || sw.ECN.KMax != 2<<20 || sw.ECN.PMax != One/20 {
		t.Errorf("%+v", sw.ECN)
	}
	if sw.Scheduler.Strict != 1<<6 || sw.Scheduler.Weights != (Weights{14, 14, 1, 15, 15, 1, 1, 1}) {
		t.Errorf("%+v", sw.Scheduler)
	}
	if sw.PFC.Watchdog != (Watchdog{On: true, Detect: 200 * sim.Millisecond, Restore: 400 * sim.Millisecond, Action: "drop"}) {
		t.Errorf("%+v", sw.PFC.Watchdog)
	}
	if len(warnings) != 0 {
		t.Error(warnings)
	}
	cables, err := c.Cables()
	if err != nil || len(cables) != 3 || cables[2] != (Cable{"Ethernet8", 40e3}) {
		t.Error(cables, err)
	}
	// Nothing of the file is lost, whatever it is.
	if got := written(t, c); got != string(data) {
		t.Error(cmp.Diff(string(data), got))
	}
	// Settings that are there already change nothing.
	if w, err := c.SetSwitch(&sw); err != nil || len(w) > 0 {
		t.Error(w, err)
	}
	if got := written(t, c); got != string(data) {
		t.Error(cmp.Diff(string(data), got))
	}
}

// Changed thresholds reach the rows that ports refer to, and nothing else.
func TestSetSONiC(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Switch)
		want   []string // lines that are new
	}{
		{"ECN", func(s *Switch) { s.ECN.KMin, s.ECN.KMax, s.ECN.PMax = 256e3, 512e3, One/4 }, []string{
			`"green_max_threshold": "512000",`, `"green_min_threshold": "256000",`, `"green_drop_probability": "25",`,
			`"yellow_max_threshold": "512000",`, `"yellow_min_threshold": "256000",`, `"yellow_drop_probability": "25",`,
			`"red_max_threshold": "512000",`, `"red_min_threshold": "256000",`, `"red_drop_probability": "25"`,
		}},
		{"alpha", func(s *Switch) { s.Buffer.Alpha = One / 16 }, []string{`"dynamic_th": "-4",`, `"dynamic_th": "-4",`}},
		{"headroom", func(s *Switch) { s.Buffer.Headroom.Bytes = 40000 }, []string{`"xoff": "40000",`, `"size": "58432",`}},
		{"xon", func(s *Switch) { s.Buffer.XONOffset = 9216 }, []string{`"xon_offset": "9216"`, `"xon_offset": "9216"`}},
		{"map", func(s *Switch) { s.DSCPMap[26] = 4 }, []string{`"26": "4",`}},
		{"map of a new code point", func(s *Switch) { s.DSCPMap[34] = 3 }, []string{`"34": "3"`, `"48": "6",`}},
		{"PFC", func(s *Switch) { s.PFC.Priorities = 1 << 3 }, []string{`"pfc_enable": "3"`, `"pfc_enable": "3"`, `"pfc_enable": "3"`}},
		{"pool", func(s *Switch) { s.Buffer.HeadroomPool = 3000000 }, []string{`"xoff": "3000000"`}},
		{"total", func(s *Switch) { s.Buffer.Total = 16000000 }, []string{`"size": "16000000",`, `"size": "16000000",`, `"size": "16000000",`}},
		{"egress", func(s *Switch) { s.Buffer.EgressAlpha = One }, []string{`"dynamic_th": "0"`}},
	} {
		db, data := readConfigDB(t)
		sw, _, err := db.Switch(Default().Switch)
		if err != nil {
			t.Fatal(err)
		}
		c.change(&sw)
		if w, err := db.SetSwitch(&sw); err != nil || len(w) > 0 {
			t.Errorf("%s: %v %v", c.name, w, err)
		}
		text := written(t, db)
		old := map[string]int{}
		for _, l := range strings.Split(string(data), "\n") {
			old[strings.TrimSpace(l)]++
		}
		var fresh []string
		for _, l := range strings.Split(text, "\n") {
			l = strings.TrimSpace(l)
			if old[l]--; old[l] < 0 {
				fresh = append(fresh, l)
			}
		}
		if diff := cmp.Diff(c.want, fresh, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		again, err := ReadSONiC("again", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := again.Switch(Default().Switch)
		if diff := cmp.Diff(sw, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", c.name, err, diff)
		}
	}
}

// A change that splits rows, or makes new ones, reads back as it was meant.
func TestSetSONiCQueues(t *testing.T) {
	for _, change := range []func(*Switch){
		func(s *Switch) { s.ECN.Priorities = 1 << 3 },
		func(s *Switch) { s.ECN.Priorities = 1<<3 | 1<<0 },
		func(s *Switch) { s.ECN.ByPriority = []PrioMark{{Priority: 4, KMin: 10e3, KMax: 20e3, PMax: One}} },
		func(s *Switch) { s.Scheduler.Weights[3] = 80 },
		func(s *Switch) { s.Scheduler.Strict = 1<<6 | 1<<4 },
		func(s *Switch) { s.PFC.Watchdog.On = false },
		func(s *Switch) { s.PFC.Watchdog.Detect = 400 * sim.Millisecond },
	} {
		db, _ := readConfigDB(t)
		sw, _, err := db.Switch(Default().Switch)
		if err != nil {
			t.Fatal(err)
		}
		change(&sw)
		if w, err := db.SetSwitch(&sw); err != nil || len(w) > 0 {
			t.Errorf("%v %v", w, err)
		}
		got, _, err := db.Switch(Default().Switch)
		if err != nil {
			t.Fatal(err)
		}
		if !sw.PFC.Watchdog.On {
			sw.PFC.Watchdog = got.PFC.Watchdog // its times are nowhere then
			if got.PFC.Watchdog.On {
				t.Error("the watchdog is still on")
			}
		}
		for p := range uint8(8) {
			a, ok1 := sw.ECN.For(p, 0)
			b, ok2 := got.ECN.For(p, 0)
			if a != b || ok1 != ok2 {
				t.Errorf("priority %d: %v %v, want %v %v", p, b, ok2, a, ok1)
			}
			if w := sw.Scheduler.Weights[p]; !sw.Scheduler.Strict.Has(p) && got.Scheduler.Weights[p] != w {
				t.Errorf("priority %d: weight %d, want %d", p, got.Scheduler.Weights[p], w)
			}
		}
		if got.Scheduler.Strict != sw.Scheduler.Strict || got.PFC != sw.PFC || got.Buffer.Total != sw.Buffer.Total {
			t.Errorf("%+v", got)
		}
	}
}

// Tables made from nothing say what the switch was, for all that SONiC can hold.
func TestNewSONiC(t *testing.T) {
	ports := []SONiCPort{{"Ethernet0", 100 * sim.Gbps, 25 * sim.Nanosecond}, {"Ethernet4", 100 * sim.Gbps, 25 * sim.Nanosecond}, {"Ethernet8", 400 * sim.Gbps, sim.Microsecond}}
	rapid.Check(t, func(t *rapid.T) {
		sw := Default().Switch
		bytes := rapid.Map(rapid.Int64Range(0, 200_000_000), func(n int64) Bytes { return Bytes(n) })
		alpha := rapid.Map(rapid.Int64Range(-10, 6), alphaOf)
		b := &sw.Buffer
		b.Total, b.HeadroomPool = bytes.Draw(t, "total")+1, bytes.Draw(t, "pool")
		b.Alpha, b.LossyAlpha = alpha.Draw(t, "alpha"), alpha.Draw(t, "lossy")
		b.EgressAlpha, b.EgressReserved = alpha.Draw(t, "egress"), bytes.Draw(t, "egress reserved")
		b.Reserved, b.XON, b.XONOffset = bytes.Draw(t, "reserved"), bytes.Draw(t, "xon"), bytes.Draw(t, "offset")
		if rapid.Bool().Draw(t, "static") {
			b.XOFF = bytes.Draw(t, "xoff") + 1
		}
		small, large := bytes.Draw(t, "headroom"), bytes.Draw(t, "more")
		b.Headroom = Headroom{HeadroomBytes, small}
		if large > 0 {
			b.HeadroomByRate = []RateHeadroom{{400 * sim.Gbps, Headroom{HeadroomBytes, small + large}}}
		}
		for i := range sw.DSCPMap {
			sw.DSCPMap[i] = rapid.Uint8Range(0, 7).Draw(t, "dscp")
		}
		sw.PFC.Priorities = Prios(rapid.Uint8Range(1, 255).Draw(t, "pfc"))
		if sw.PFC.Priorities == 0xff {
			sw.PFC.Priorities = 0x7f // a lossy class shows the lossy profile
		}
		sw.Scheduler.Strict = Prios(rapid.Uint8().Draw(t, "strict"))
		for i := range sw.Scheduler.Weights {
			if !sw.Scheduler.Strict.Has(uint8(i)) {
				sw.Scheduler.Weights[i] = rapid.Int32Range(1, 100).Draw(t, "weight")
			}
		}
		sw.ECN.Priorities = Prios(rapid.Uint8().Draw(t, "ecn"))
		sw.ECN.KMin = bytes.Draw(t, "kmin")
		sw.ECN.KMax = sw.ECN.KMin + bytes.Draw(t, "kmax")
		sw.ECN.PMax = percent(rapid.Int64Range(0, 100).Draw(t, "pmax"))
		if rapid.Bool().Draw(t, "watchdog") {
			sw.PFC.Watchdog = Watchdog{On: true, Detect: 300 * sim.Millisecond, Restore: sim.Second, Action: "forward"}
		}
		c, warnings := NewSONiC(&sw, ports, func(p SONiCPort) Bytes { return b.HeadroomOf(p.Rate).Bytes })
		if len(warnings) > 0 {
			t.Fatal(warnings)
		}
		var out strings.Builder
		if err := c.Write(&out); err != nil {
			t.Fatal(err)
		}
		back, err := ReadSONiC("x", []byte(out.String()))
		if err != nil {
			t.Fatal(err)
		}
		got, warnings, err := back.Switch(Default().Switch)
		if err != nil || len(warnings) > 0 {
			t.Fatalf("%v %v\n%s", err, warnings, out.String())
		}
		if b.XOFF > 0 {
			got.Buffer.Alpha = b.Alpha // one of the two is written
		}
		if sw.ECN.Priorities == 0 {
			got.ECN = sw.ECN
		}
		got.Scheduler.Weights, sw.Scheduler.Weights = visible(&got), visible(&sw)
		if diff := cmp.Diff(sw, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s\n%s", diff, out.String())
		}
	})
	sw := Default().Switch
	sw.Buffer.Alpha, sw.Buffer.ScaleAlpha, sw.PFC.GlobalPause, sw.Buffer.AlphaBy[4] = One/3, true, true, One
	sw.ECN.PMax, sw.ECN.ByRate = One/300, []RateMark{{Rate: sim.Gbps}}
	if _, w := NewSONiC(&sw, ports, func(SONiCPort) Bytes { return 1 }); len(w) != 6+2 {
		t.Error(len(w), w) // alpha for each of the three ports
	}
}

// visible clears weights of strict queues, which say nothing.
func visible(s *Switch) Weights {
	w := s.Scheduler.Weights
	for i := range w {
		if s.Scheduler.Strict.Has(uint8(i)) {
			w[i] = 1
		}
	}
	return w
}

func TestSONiCWarnings(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"pfc_enable": "3,4"
        },
        "Ethernet8"`, `"pfc_enable": "3"
        },
        "Ethernet8"`, `PORT_QOS_MAP|Ethernet4.pfc_enable: "3" is not what Ethernet0 has, "3,4", which is used for all ports`},
		{`"pool": "[BUFFER_POOL|ingress_lossless_pool]",
            "size": "182784",`, `"colour": "red", "size": "182784",`, `BUFFER_PROFILE|pg_lossless_400000_40m_profile.colour: "colour" is not looked at`},
		{`"weight": "14"`, `"weight": "14", "pir": "1"`, `SCHEDULER|scheduler.0.pir: pir: shapers are not simulated`},
		{`"2": "2",
            "3": "3",
            "4": "4",
            "5": "5"`, `"2": "1", "3": "3", "4": "4", "5": "5"`, `TC_TO_QUEUE_MAP: traffic classes 1 and 2 share queue 1; here each has its own`},
		{`"xoff": "34816",
            "pool": "[BUFFER_POOL|ingress_lossless_pool]",
            "size": "53248",`, `"size": "0",`, `BUFFER_PG|Ethernet0|3-4.profile: group 3 has PFC, but the profile pg_lossless_100000_5m_profile has no headroom (xoff)`},
		{`"dynamic_th": "-3",
            "xoff": "164352"`, `"dynamic_th": "0",
            "xoff": "164352"`, `BUFFER_PG|Ethernet8|3-4.profile: dynamic_th of the profile is "0", of the first "-3", which is used for all ports`},
	} {
		_, data := readConfigDB(t)
		if !strings.Contains(string(data), c.old) {
			t.Fatalf("no %s", c.old)
		}
		db, err := ReadSONiC("f", []byte(strings.Replace(string(data), c.old, c.new, 1)))
		if err != nil {
			t.Error(err)
			continue
		}
		_, w, err := db.Switch(Default().Switch)
		found := false
		for i := range w {
			found = found || strings.HasSuffix(w[i].String(), "warning: "+c.want)
		}
		if err != nil || !found {
			t.Errorf("want %s\ngot %v %v", c.want, w, err)
		}
	}
}

func TestSONiCErrors(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{``, `f:1:1: the file ends inside a value`},
		{`{`, `f:1:2: the file ends inside a value`},
		{`{"QUEUE": }`, `f:1:11: invalid character '}' looking for beginning of value`},
		{"{\n  \"PORT\": {},\n  \"PORT\": {}\n}", `f:3:3: PORT: given twice; first in line 2`},
		{`[]`, `f:1:1: a list where tables are wanted`},
		{`{"PORT": {}}`, `f:1:1: none of the tables BUFFER_POOL, BUFFER_PROFILE, BUFFER_PG, BUFFER_QUEUE, PORT_QOS_MAP, DSCP_TO_TC_MAP, DOT1P_TO_TC_MAP, TC_TO_PRIORITY_GROUP_MAP, TC_TO_QUEUE_MAP, WRED_PROFILE, QUEUE, SCHEDULER, PFC_WD, CABLE_LENGTH is there`},
		{`{"QUEUE": 3}`, `f:1:11: QUEUE: "3" where rows are wanted`},
		{`{"QUEUE": {"Ethernet0|3": []}}`, `f:1:27: QUEUE|Ethernet0|3: a list where fields are wanted`},
		{`{"QUEUE": {}} x`, `f:1:15: something follows the value`},
		{`{"QUEUE": ` + strings.Repeat("[", 50), `f:1:51: nested more than 40 deep`},
		{`{"QUEUE": {"Ethernet0": {}}}`, `f:1:25: QUEUE|Ethernet0: the key is not PORT|QUEUE or PORT|FROM-TO`},
		{`{"QUEUE": {"Ethernet0|3": {"wred_profile": "A"}}}`, `f:1:27: QUEUE|Ethernet0|3.wred_profile: there is no WRED_PROFILE "A"`},
		{`{"QUEUE": {"Ethernet0|3": {"scheduler": "[SCHEDULER|s]"}}}`, `f:1:27: QUEUE|Ethernet0|3.scheduler: there is no SCHEDULER "s"`},
		{`{"QUEUE": {"Ethernet0|3": {"scheduler": "s"}}, "SCHEDULER": {"s": {"type": "FIFO"}}}`, `f:1:76: SCHEDULER|s.type: unknown "FIFO"; it is DWRR, WRR or STRICT`},
		{`{"QUEUE": {"Ethernet0|3": {"scheduler": "s"}}, "SCHEDULER": {"s": {"weight": "0"}}}`, `f:1:78: SCHEDULER|s.weight: "0" is not a whole number from 1 to 100`},
		{`{"WRED_PROFILE": {"A": {"ecn": "ecn_all", "green_min_threshold": "9", "green_max_threshold": "3"}}}`, `f:1:66: WRED_PROFILE|A.green_min_threshold: 9 is above green_max_threshold, 3`},
		{`{"WRED_PROFILE": {"A": {"ecn": "maybe", "green_min_threshold": "1", "green_max_threshold": "3"}}}`, `f:1:32: WRED_PROFILE|A.ecn: unknown "maybe"`},
		{`{"WRED_PROFILE": {"A": {"ecn": "ecn_all", "green_min_threshold": "1MB", "green_max_threshold": "3"}}}`, `f:1:66: WRED_PROFILE|A.green_min_threshold: "1MB" is not a whole number from 0 to 256000000000`},
		{`{"DSCP_TO_TC_MAP": {"A": {"64": "0"}}}`, `f:1:33: DSCP_TO_TC_MAP|A.64: key "64" is not a number from 0 to 63`},
		{`{"DSCP_TO_TC_MAP": {"A": {"6": "8"}}}`, `f:1:32: DSCP_TO_TC_MAP|A.6: "8" is not a number from 0 to 7`},
		{`{"PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "A"}}}`, `f:1:32: PORT_QOS_MAP|Ethernet0: there is no DSCP_TO_TC_MAP "A"`},
		{`{"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "9"}}}`, `f:1:47: PORT_QOS_MAP|Ethernet0.pfc_enable: "9" is not a list of priorities from 0 to 7`},
		{`{"BUFFER_PG": {"Ethernet0|3": {"profile": "p"}}}`, `f:1:31: BUFFER_PG|Ethernet0|3.profile: there is no BUFFER_PROFILE "p"`},
		{`{"BUFFER_PROFILE": {"p": {"xoff": "1", "dynamic_th": "8"}}}`, `f:1:54: BUFFER_PROFILE|p.dynamic_th: "8" is not a whole number from -10 to 7`},
		{`{"BUFFER_POOL": {"p": {"size": "-1"}}}`, `f:1:32: BUFFER_POOL|p.size: "-1" is not a whole number from 0 to 256000000000`},
		{`{"PFC_WD": {"Ethernet0": {"action": "explode"}}}`, `f:1:37: PFC_WD|Ethernet0.action: unknown "explode"; it is drop, forward or alert`},
		{`{"CABLE_LENGTH": {"AZURE": {"Ethernet0": "5"}}}`, `f:1:42: CABLE_LENGTH|AZURE.Ethernet0: "5" has no unit: give mm, cm, m or km, as in 100m`},
	} {
		db, err := ReadSONiC("f", []byte(c.in))
		if err == nil {
			if _, _, err = db.Switch(Default().Switch); err == nil {
				_, err = db.Cables()
			}
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", c.in, err, c.want)
		}
	}
}
