package dcqcn

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The values of the presets as their sources print them, each read through its
// knob in mlxconfig's units.
func TestPresetValues(t *testing.T) {
	// NVIDIA's shipped defaults, as mlxconfig shows them.
	m := mlx5()
	for name, want := range map[string]int64{
		"clamp_tgt_rate_after_time_inc": 1, "clamp_tgt_rate": 0, "rpg_time_reset": 300, "rpg_byte_reset": 32767, "rpg_threshold": 1,
		"rpg_max_rate": 0, "rpg_ai_rate": 5, "rpg_hai_rate": 50, "rpg_gd": 11, "rpg_min_dec_fac": 50, "rpg_min_rate": 1,
		"rate_to_set_on_first_cnp": 0, "dce_tcp_g": 1019, "dce_tcp_rtt": 1, "rate_reduce_monitor_period": 4, "initial_alpha_value": 1023,
		"min_time_between_cnps": 4, "cnp_dscp": 48, "cnp_802p_prio": 6,
	} {
		k, ok := FindKnob(name)
		if !ok || k.Int(&m) != want {
			t.Errorf("mlx5 %s = %d, want %d", name, k.Int(&m), want)
		}
	}
	// SIGCOMM'15 and CoNEXT'16, by their symbols.
	p := paper()
	for symbol, want := range map[string]string{
		"g": "1/256", "N": "50us", "K": "55us", "T": "55us", "B": "10MB", "F": "5", "R_AI": "40Mbps", "r_hai": "200Mbps",
	} {
		if k, ok := FindKnob(symbol); !ok || k.Get(&p) != want {
			t.Errorf("paper %s = %s, want %s", symbol, k.Get(&p), want)
		}
	}
	// HPCC's simulator: 5·bw/25, 50·bw/25 and 1000·bw/100 Mb/s, bw in Gb/s.
	h := hpcc()
	for bw := uint64(25); bw <= 800; bw *= 2 {
		s := h.Scaled(bw * giga)
		got := [...]uint64{s.RPGAIRate, s.RPGHAIRate, s.RPGMinRate}
		want := [...]uint64{5 * mega * bw / 25, 50 * mega * bw / 25, 1000 * mega * bw / 100}
		if got != want || s.AIRateDiv+s.HAIRateDiv+s.MinRateDiv != 0 || s.Validate() != nil {
			t.Errorf("hpcc at %d Gb/s: %d, want %d", bw, got, want)
		}
		var a, b RP
		a.Start(0, &h, bw*giga)
		b.Start(0, &s, bw*giga)
		for now := 100 * us; now < 3000*us; now += 100 * us {
			if now == 100*us || now == 800*us {
				a.Congestion(now)
				b.Congestion(now)
			}
			if a.Rate(now) != b.Rate(now) {
				t.Fatalf("hpcc at %d Gb/s, scaled or not: %d, %d", bw, a.Rate(now), b.Rate(now))
			}
		}
	}
	if m5 := mlx5(); m5.Scaled(giga) != mlx5() {
		t.Error("absolute rates were scaled")
	}
	if _, err := Preset("papers"); err == nil || err.Error() != `dcqcn preset "papers": not one of paper, mlx5, hpcc` {
		t.Error(err)
	}
}

// Every field of Params but the name has a knob, and a knob changes its field
// alone.
func TestKnobsCoverParams(t *testing.T) {
	covered := map[string]string{"Name": ""}
	for _, k := range Knobs() {
		p, q := Params{}, Params{}
		if k.form == weight {
			if err := k.Set(&q, "3/7"); err != nil {
				t.Fatal(err)
			}
		} else {
			k.set(&q, k.most)
			if k.div != nil {
				*k.div(&q) = 9
			}
		}
		a, b := reflect.ValueOf(p), reflect.ValueOf(q)
		for i := range a.NumField() {
			name := a.Type().Field(i).Name
			if a.Field(i).Interface() == b.Field(i).Interface() {
				continue
			}
			if other := covered[name]; other != "" {
				t.Errorf("%s and %s both change %s", other, k.Name, name)
			}
			covered[name] = k.Name
		}
		if k.Doc == "" || strings.ToLower(k.Name) != k.Name {
			t.Errorf("%+v", k.Name)
		}
	}
	for i := range reflect.TypeFor[Params]().NumField() {
		if name := reflect.TypeFor[Params]().Field(i).Name; covered[name] == "" && name != "Name" {
			t.Errorf("no knob for %s", name)
		}
	}
	if _, ok := FindKnob(""); ok {
		t.Error("a knob without a name")
	}
}

func TestSetAndErrors(t *testing.T) {
	for _, c := range []struct{ knob, value, want string }{
		{"rpg_time_reset", "55us", "55us"},
		{"rpg_time_reset", "55", "55us"},
		{"T", "0.5 us", "500ns"},
		{"T", "1.5ms", "1500us"},
		{"T", "300µs", "300us"},
		{"T", "0", "0"},
		{"rpg_ai_rate", "40Mbps", "40Mbps"},
		{"rpg_ai_rate", "5", "5Mbps"},
		{"rpg_ai_rate", "2.5Gb/s", "2500Mbps"},
		{"rpg_ai_rate", "line/20", "line/20"},
		{"rpg_min_rate", "line/100", "line/100"},
		{"B", "10MB", "10MB"},
		{"B", "32767", "2097088B"},
		{"B", "64 KiB", "65536B"},
		{"g", "1/256", "1/256"},
		{"dce_tcp_g", "1019", "5/1024"},
		{"clamp_tgt_rate", "1", "true"},
		{"clamp_tgt_rate", "off", "false"},
		{"notify", "ACK", "ack"},
		{"alpha_update", "period", "period"},
		{"F", "5", "5"},
		{"rpg_gd", " 11 ", "11"},
	} {
		k, ok := FindKnob(c.knob)
		p := paper()
		if err := k.Set(&p, c.value); !ok || err != nil || k.Get(&p) != c.want {
			t.Errorf("%s = %q: %q, %v; want %q", c.knob, c.value, k.Get(&p), err, c.want)
		}
	}
	for _, c := range []struct{ knob, value, want string }{
		{"rpg_time_reset", "55 apples", `rpg_time_reset: "55 apples" is not a time: a number of us, or a number with ns, us, ms or s`},
		{"rpg_time_reset", "10ns", "rpg_time_reset: 10ns is not allowed: 0 or 100ns to 131071us"},
		{"rpg_time_reset", "", `rpg_time_reset: "" is not a time: a number of us, or a number with ns, us, ms or s`},
		{"rpg_time_reset", "-5", `rpg_time_reset: "-5" is not a time: a number of us, or a number with ns, us, ms or s`},
		{"rpg_ai_rate", "0.0001bps", `rpg_ai_rate: "0.0001bps" is not a rate: a number of Mb/s, or a number with kbps, Mbps or Gbps, or line/n`},
		{"rpg_ai_rate", "99999999999999999999", `rpg_ai_rate: "99999999999999999999" is not a rate: a number of Mb/s, or a number with kbps, Mbps or Gbps, or line/n`},
		{"rpg_ai_rate", "line/0", "rpg_ai_rate: line/0 is not allowed: line/1 to line/1000000"},
		{"rpg_max_rate", "line/5", `rpg_max_rate: "line/5" is not a rate: a number of Mb/s, or a number with kbps, Mbps or Gbps`},
		{"rpg_min_rate", "0", "rpg_min_rate: 0 is not allowed: 1kbps to 1Pbps"},
		{"rpg_gd", "16", "rpg_gd: 16 is not allowed: 0 to 15"},
		{"rpg_gd", "eleven", `rpg_gd: "eleven" is not a whole number from 0 up`},
		{"rpg_min_dec_fac", "101", "rpg_min_dec_fac: 101 is not allowed: 0 to 100"},
		{"g", "1/100000", "dce_tcp_g: 1/100000 is not allowed: 1/4096 to 1"},
		{"g", "0/5", "dce_tcp_g: 0/5 is not allowed: 1/4096 to 1"},
		{"g", "3/2", "dce_tcp_g: 3/2 is not allowed: 1/4096 to 1"},
		{"g", "1/0", "dce_tcp_g: 1/0 is not allowed: 1/4096 to 1"},
		{"g", "0.5", `dce_tcp_g: "0.5" is not a weight: g as a fraction such as 1/256, or mlxconfig's (1-g)·1024`},
		{"g", "a/b", `dce_tcp_g: "a/b" is not a weight: g as a fraction such as 1/256, or mlxconfig's (1-g)·1024`},
		{"g", "1024", "dce_tcp_g: 1024 is not allowed: 0 to 1023, which is (1-g)·1024"},
		{"notify", "ecn", `notify: "ecn" is not cnp or ack`},
		{"clamp_tgt_rate", "maybe", `clamp_tgt_rate: "maybe" is not true or false`},
		{"B", "1TB", `rpg_byte_reset: "1TB" is not a size: a number of units of 64 B, or a number with B, KB or MB`},
		{"alpha_bits", "9", "alpha_bits: 9 is not allowed: 10 to 32"},
	} {
		k, _ := FindKnob(c.knob)
		p := paper()
		err := k.Set(&p, c.value)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s = %q: %v\nwant %s", c.knob, c.value, err, c.want)
		}
		if p != paper() {
			t.Errorf("%s = %q: changed what it refused", c.knob, c.value)
		}
	}
	// A rate set outright no longer follows the line.
	h := hpcc()
	k, _ := FindKnob("rpg_ai_rate")
	if err := k.SetInt(&h, 5); err != nil || h.Scaled(400*giga).RPGAIRate != 5*mega {
		t.Error("still a share", err)
	}
	if err := k.SetInt(&h, math.MaxInt64); err == nil || k.SetInt(&h, -1) == nil || h.RPGAIRate != 5*mega {
		t.Error(err)
	}
}

// What Get prints Set reads, and nothing that is written makes Set panic or
// accept what Validate refuses.
func TestSetGetRoundTrip(t *testing.T) {
	knobs := Knobs()
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(knobs).Draw(t, "knob")
		p := drawParams(t)
		q := p
		if err := k.Set(&q, k.Get(&p)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p, q); d != "" && (k.div == nil || *k.div(&p) == 0) {
			t.Fatalf("%s: %s", k.Name, d)
		}
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`(line/)?[0-9]{1,20}(\.[0-9]{1,3})?(/[0-9]+)? ?(us|ns|s|Mbps|Gb/s|B|MiB|%)?`)).Draw(t, "text")
		if k.Set(&q, text) == nil {
			if err := k.check(&q); err != nil {
				t.Fatalf("%s = %q was taken: %v", k.Name, text, err)
			}
		}
		if v := rapid.Int64().Draw(t, "int"); k.SetInt(&q, v) == nil {
			if err := k.check(&q); err != nil {
				t.Fatalf("%s = %d was taken: %v", k.Name, v, err)
			}
		}
	})
}

func TestValidateAndWarnings(t *testing.T) {
	for _, c := range []struct {
		change func(p *Params)
		want   string
	}{
		{func(p *Params) { p.RPGTimeReset, p.RPGByteReset = 0, 0 }, "rpg_time_reset and rpg_byte_reset are both 0: a rate once cut would never rise"},
		{func(p *Params) { p.RPGMaxRate = mega }, "rpg_min_rate: 100Mbps is above rpg_max_rate, 1Mbps"},
		{func(p *Params) { p.RPGAIRate, p.RPGHAIRate = 0, 0 }, "rpg_ai_rate is 0 and hyper increase adds nothing or is never reached: the target rate would never rise"},
		{func(p *Params) { p.RPGAIRate, p.RPGByteReset = 0, 0 }, "rpg_ai_rate is 0 and hyper increase adds nothing or is never reached: the target rate would never rise"},
		{func(p *Params) { p.DCETCPG = Fraction{} }, "dce_tcp_g: 0/0 is not allowed: 1/4096 to 1"},
		{func(p *Params) { p.AIRateDiv = 2_000_000 }, "rpg_ai_rate: line/2000000 is not allowed: line/1 to line/1000000"},
		{func(p *Params) { p.Notify = 9 }, "notify: 9 is not allowed: cnp or ack"},
		{func(p *Params) { p.DCETCPRTT = -1 }, "dce_tcp_rtt: -1ns is not allowed: 100ns to 131071us"},
		{func(p *Params) { p.RPGMinRate = math.MaxUint64 }, "rpg_min_rate: 4611686018427387904bps is not allowed: 1kbps to 1Pbps"},
	} {
		p := paper()
		c.change(&p)
		if err := p.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
	if (&Params{}).Validate() == nil {
		t.Error("nothing is valid")
	}
	for _, name := range Presets() {
		p, _ := Preset(name)
		if w := p.Warnings(100 * giga); len(w) != 0 {
			t.Errorf("%s: %q", name, w)
		}
	}
	for _, c := range []struct {
		change func(p *Params)
		want   string
	}{
		{func(p *Params) { p.DCETCPRTT = p.MinTimeBetweenCNPs }, "dce_tcp_rtt 50us is not above min_time_between_cnps 50us"},
		{func(p *Params) { p.RPGMinRate = 200 * giga }, "no CNP slows a QP"},
		{func(p *Params) { p.RPGMinDecFac = 100 }, "a cut takes nothing"},
		{func(p *Params) { p.RPGMaxRate = 200 * giga }, "does nothing"},
		{func(p *Params) { p.RateToSetOnFirstCNP = 200 * giga }, "which is used instead"},
		{func(p *Params) { p.MinTimeBetweenCNPs = 0 }, "each marked packet cuts"},
		{func(p *Params) { p.Notify = NotifyAck }, "each flagged acknowledgement cuts"},
		{func(p *Params) { p.RPGTimeReset = 0 }, "only bytes sent raise the rate"},
	} {
		p := paper()
		c.change(&p)
		if w := p.Warnings(100 * giga); len(w) != 1 || !strings.Contains(w[0], c.want) {
			t.Errorf("%q, want %q", w, c.want)
		}
	}
}
