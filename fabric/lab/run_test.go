package lab

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric"
	"github.com/verbena-rdma/verbena/fabric/explain"
	"github.com/verbena-rdma/verbena/fabric/metric"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
)

// parse reads a scenario of the library, or one of its variants.
func parse(t testing.TB, name string, sets []string) *scenario.Scenario {
	t.Helper()
	file, text, err := Source(name)
	if err != nil {
		t.Fatal(err)
	}
	sc, err := scenario.ParseSet(file, text, sets)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func run(t testing.TB, name string, sets []string) (*scenario.Scenario, *result.Run) {
	t.Helper()
	sc := parse(t, name, sets)
	r, _, err := fabric.Load(sc, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	return sc, r.Result()
}

// cause is what explain must find in a scenario: that which was put in.
type cause struct {
	main explain.Main
	at   string // where; "": anywhere
	says string // a regular expression that the text matches
}

func causes() map[string]cause {
	return map[string]cause{
		"all-reduce":           {explain.AllWell, "", ""},
		"cnp-congested":        {explain.MainHeld, "sw0:Ethernet3", `CNPs travel in priority 3 like the data`},
		"cross-subnet-ecn":     {explain.MainFalseMarks, "leaf1:Ethernet0", `every 400 us a burst of 128 KB from host16`},
		"deadlock":             {explain.MainDeadlock, "", `at leaf1, 2 flows go up again after coming down`},
		"dscp-map-wrong":       {explain.MainMisfit, "leaf0", `priority 3 is in priority 0 at leaf0`},
		"ecmp-polarisation":    {explain.MainECMP, "", `polarised: agg0 uses 1 of 2 links`},
		"ecn-above-xoff":       {explain.MainPause, "sw0:Ethernet0", `PFC acted and ECN did not`},
		"ecn-too-high":         {explain.MainContention, "leaf1:Ethernet0", `Kmin 512 KB`},
		"ecn-too-low":          {explain.MainFalseMarks, "leaf1:Ethernet0", `below bursts of 32 KB`},
		"fairness-convergence": {explain.MainContention, "sw0:Ethernet0", `4 flows from 4 hosts share sw0:Ethernet0`},
		"go-back-n":            {explain.AllWell, "", `Mend the link at host0:eth0`},
		"headroom-too-small":   {explain.MainOverflow, "", `violated by 32\.2 KB at sw0:Ethernet1`},
		"incast":               {explain.MainPause, "leaf0:Ethernet0", `incast, 16 senders`},
		"link-flap":            {explain.MainLinkDown, "leaf0:Ethernet8", ``},
		"lossy-vs-lossless":    {explain.MainLoss, "", `packets of lossy priority 3.*no buffer`},
		"mtu-mismatch":         {explain.MainUnroutable, "sw1:Ethernet2", `40 packets of .*MTU`},
		"one-qp":               {explain.MainSender, "host1", `20 Gb/s`},
		"parking-lot":          {explain.MainPause, "sw3:Ethernet1", `Jain's index 0\.73`},
		"pfc-off-one-hop":      {explain.MainDeaf, "spine0:Ethernet0", `spine0:Ethernet0 obeyed none`},
		"pfc-storm":            {explain.MainStorm, "host4", `Root host4, priority 3: pause storm`},
		"rocev1-subnets":       {explain.MainUnroutable, "leaf0:Ethernet2", `RoCEv1 is not routed`},
		"rss-off":              {explain.MainReceiver, "host0", `1 of 8 RX queues`},
		"slow-receiver":        {explain.MainReceiver, "host0", `it can take 40 Gb/s`},
		"small-messages":       {explain.MainSender, "host1", `packet rate`},
		"tcp-and-rdma":         {explain.MainPause, "sw0:Ethernet0", ``},
		"victim-flow":          {explain.MainSpread, "leaf0:Ethernet0", `3 flows waited for congestion that is not on the path`},
	}
}

func (c *cause) check(t *testing.T, r *result.Run) {
	s := explain.Explain(r)
	if v := &s.Verdict; v.Main != c.main || c.at != "" && v.At.Name != c.at {
		t.Errorf("explain says: %s (%d at %q); the cause is %d at %q", s.Line(), v.Main, v.At.Name, c.main, c.at)
	}
	var b bytes.Buffer
	if err := s.Text(&b, 100); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(strings.Fields(b.String()), " "); !regexp.MustCompile(c.says).MatchString(text) {
		t.Errorf("explain says nothing like %q:\n%s", c.says, b.String())
	}
}

// judge holds a run to what is expected of it, and to the rules that every run
// keeps. Only a scenario that says so may lose packets of a lossless class.
func judge(t *testing.T, sc *scenario.Scenario, r *result.Run) {
	loses := false
	for i := range sc.Expect {
		e := &sc.Expect[i]
		loses = loses || e.What == "drops.headroom_exceeded" && e.Min.Given()
		if e.Source == "" {
			t.Errorf("%s is from nowhere: source is missing", e.What)
		}
		switch o := Judge(r, e); {
		case o.Err != nil:
			t.Errorf("%s: %v", e.What, o.Err)
		case !o.OK:
			t.Errorf("%s is %s; expected %s: %s", e.What, valueText(o.Value), boundText(e), e.Source)
		}
	}
	if len(sc.Expect) == 0 {
		t.Error("nothing is expected")
	}
	for _, b := range r.Breaches {
		if !loses || b.Rule != "no drop in a lossless class" {
			t.Errorf("%v: %s: %s", b.At, b.Rule, b.Detail)
		}
	}
}

func TestScenarios(t *testing.T) {
	known := causes()
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc, first := run(t, name, nil)
			switch {
			case sc.Name != name:
				t.Errorf("it is called %q", sc.Name)
			case sc.Title == "" || strings.Contains(sc.Title, "\n") || len(sc.Title) > 100:
				t.Errorf("title %q is not one line of up to 100 bytes", sc.Title)
			case len(sc.Teaches) < 200:
				t.Errorf("it teaches too little: %q", sc.Teaches)
			}
			judge(t, sc, first)
			if c, ok := known[name]; ok {
				c.check(t, first)
			} else {
				t.Error("no cause is known")
			}
			if _, again := run(t, name, nil); again.Digest != first.Digest || again.Events != first.Events {
				t.Errorf("digests %016x and %016x of %d and %d events", first.Digest, again.Digest, first.Events, again.Events)
			}
		})
	}
}

func TestVariantsShowWhatTheySay(t *testing.T) {
	for _, name := range Names() {
		for _, v := range Variants(name) {
			t.Run(name+"/"+v.Name, func(t *testing.T) {
				t.Parallel()
				sc, r := run(t, name, v.All())
				judge(t, sc, r)
			})
		}
	}
}

// boundText writes what is expected.
func boundText(e *scenario.Expect) string {
	var parts []string
	if e.Near.Given() {
		parts = append(parts, fmt.Sprintf("%s ± %s", e.Near, percent(e.Within)))
	}
	switch {
	case e.Min.Given() && e.Max.Given() && e.Min.Value == e.Max.Value:
		parts = append(parts, e.Min.String())
	case e.Min.Given() && e.Max.Given():
		parts = append(parts, e.Min.String()+" to "+e.Max.String())
	case e.Min.Given():
		parts = append(parts, "≥ "+e.Min.String())
	case e.Max.Given() && e.Max.Value == 0:
		parts = append(parts, "0")
	case e.Max.Given():
		parts = append(parts, "≤ "+e.Max.String())
	}
	return strings.Join(parts, ", ")
}

func percent(r scenario.Ratio) string {
	return strconv.FormatFloat(math.Round(r.Float()*1e6)/1e4, 'f', -1, 64) + " %"
}

func valueText(v metric.Value) string {
	switch v.Unit {
	case metric.Bits:
		return fmt.Sprintf("%.5gGbps", v.V/1e9)
	case metric.Time:
		return fmt.Sprintf("%.6gus", v.V/1e6)
	case metric.Bytes:
		return fmt.Sprintf("%.6gKB", v.V/1e3)
	case metric.Number:
	}
	return fmt.Sprintf("%.6g", v.V)
}
