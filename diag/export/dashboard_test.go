package export_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/export"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Every metric that the dashboard names is exported by some host, with the labels that
// it uses.
func TestDashboard(t *testing.T) {
	b, err := os.ReadFile("../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Templating struct {
			List []struct{ Definition string }
		}
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range hosts(t) {
		all.WriteString(text(t, collector(unpack(t, name), export.Options{})))
	}
	all.WriteString(text(t, collector(own(), export.Options{})))
	all.WriteString(text(t, collector(rich(), export.Options{})))
	exported := all.String()
	metric := regexp.MustCompile(`rdma_[a-z0-9_]+`)
	label := regexp.MustCompile(`{{(\w+)}}`)
	n := 0
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			for _, m := range metric.FindAllString(target.Expr, -1) {
				n++
				line := regexp.MustCompile(`(?m)^` + m + `(\{.*\})? `).FindString(exported)
				if line == "" {
					t.Errorf("panel %q: no host has %s", p.Title, m)
					continue
				}
				for _, l := range label.FindAllStringSubmatch(target.LegendFormat, -1) {
					if l[1] != "instance" && !strings.Contains(line, l[1]+"=") {
						t.Errorf("panel %q: %s has no label %s", p.Title, m, l[1])
					}
				}
			}
		}
	}
	for _, v := range d.Templating.List {
		for _, m := range metric.FindAllString(v.Definition, -1) {
			n++
			if !strings.Contains(exported, "\n"+m+"{") {
				t.Errorf("variable: no host has %s", m)
			}
		}
	}
	if n < 25 || len(d.Panels) < 10 {
		t.Errorf("%d metrics in %d panels", n, len(d.Panels))
	}
}

// Every expression of the dashboard is one that Prometheus takes and that finds something:
// brackets balance, functions are known, and each metric has the labels that its matchers
// and the groupings around it name.
func TestDashboardExpressions(t *testing.T) {
	b, err := os.ReadFile("../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range hosts(t) {
		all.WriteString(text(t, collector(unpack(t, name), export.Options{})))
	}
	all.WriteString(text(t, collector(own(), export.Options{})))
	all.WriteString(text(t, collector(rich(), export.Options{})))
	labels := labelsOf(all.String())
	n := 0
	for _, m := range regexp.MustCompile(`"(?:expr|definition)": ("(?:[^"\\]|\\.)*")`).FindAllSubmatch(b, -1) {
		var expr string
		if err := json.Unmarshal(m[1], &expr); err != nil {
			t.Fatal(err)
		}
		n++
		for _, e := range wrongIn(expr, labels) {
			t.Errorf("%s: %s", expr, e)
		}
	}
	if n < 25 {
		t.Errorf("%d expressions", n)
	}
	// The check finds what it is for.
	for expr, want := range map[string]string{
		`rate(rdma_qps{device="a"}[5m]`:      "brackets",
		`rate(rdma_qps{device="a"}[5m)]`:     "brackets",
		`ratio(rdma_qps)`:                    "function ratio",
		`rdma_qp`:                            "metric rdma_qp",
		`rdma_qps{devise=~"a"}`:              "label devise",
		`sum by (instance, prot) (rdma_qps)`: "label prot",
		`rdma_qps * on (device) group_left (colour) rdma_port_info`: "label colour",
		`rdma_qps{state="a]", type!~"("}`:                           "",
	} {
		got := strings.Join(wrongIn(expr, labels), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// labelsOf are the labels of every metric of scrapes.
func labelsOf(scrapes string) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	name := regexp.MustCompile(`([a-z_]+)="(?:[^"\\]|\\.)*"`)
	for _, m := range regexp.MustCompile(`(?m)^(rdma_\w+)(\{.*\})? `).FindAllStringSubmatch(scrapes, -1) {
		if all[m[1]] == nil {
			all[m[1]] = map[string]bool{"instance": true, "job": true} // Prometheus adds these
		}
		for _, l := range name.FindAllStringSubmatch(m[2], -1) {
			all[m[1]][l[1]] = true
		}
	}
	return all
}

var (
	promStrings  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	promRanges   = regexp.MustCompile(`\[[^\]]*\]`)
	promMatchers = regexp.MustCompile(`(\w*)\s*\{([^}]*)\}`)
	promMatch    = regexp.MustCompile(`^(\w+)\s*(?:=~|!~|!=|=)\s*""$`)
	promGroups   = regexp.MustCompile(`\b(by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	promVariable = regexp.MustCompile(`^\s*label_values\(\s*(.*),\s*(\w+)\s*\)\s*$`)
	promWords    = regexp.MustCompile(`[A-Za-z_]\w*(\s*\()?`)
)

// promNames are the functions and words of PromQL, and Grafana's, that may be there.
var promNames = []string{"rate(", "irate(", "increase(", "delta(", "sum", "max", "min", "avg", "count", "topk(", "histogram_quantile(", "clamp_min(", "abs(", "and", "or", "unless", "bool", "group_left", "group_right", "offset"}

// wrongIn says what is wrong with an expression.
func wrongIn(expr string, labels map[string]map[string]bool) []string {
	var wrong []string
	expr = promStrings.ReplaceAllString(expr, `""`)
	var open []rune
	for _, c := range expr {
		if i := strings.IndexRune("([{", c); i >= 0 {
			open = append(open, rune(")]}"[i]))
		} else if strings.ContainsRune(")]}", c) {
			if len(open) == 0 || open[len(open)-1] != c {
				return []string{"brackets do not balance"}
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return []string{"brackets do not balance"}
	}
	var named []string // labels that some metric of the expression must have
	if m := promVariable.FindStringSubmatch(expr); m != nil {
		expr, named = m[1], append(named, m[2])
	}
	has := func(metric, label string) {
		if labels[metric] != nil && !labels[metric][label] {
			wrong = append(wrong, metric+" has no label "+label)
		}
	}
	expr = promRanges.ReplaceAllString(expr, "")
	expr = promMatchers.ReplaceAllStringFunc(expr, func(s string) string {
		m := promMatchers.FindStringSubmatch(s)
		for one := range strings.SplitSeq(m[2], ",") {
			l := promMatch.FindStringSubmatch(strings.TrimSpace(one))
			if m[1] == "" || l == nil {
				wrong = append(wrong, "matcher "+s)
				continue
			}
			has(m[1], l[1])
		}
		return m[1]
	})
	var any []string // of group_left and group_right: one side has them
	expr = promGroups.ReplaceAllStringFunc(expr, func(s string) string {
		m := promGroups.FindStringSubmatch(s)
		for l := range strings.SplitSeq(m[2], ",") {
			if l = strings.TrimSpace(l); l == "" {
				continue
			}
			if strings.HasPrefix(m[1], "group_") {
				any = append(any, l)
			} else {
				named = append(named, l)
			}
		}
		return " "
	})
	var metrics []string
	for _, w := range promWords.FindAllString(expr, -1) {
		call := strings.HasSuffix(w, "(")
		w = strings.TrimSpace(strings.TrimSuffix(w, "("))
		switch {
		case !call && labels[w] != nil:
			metrics = append(metrics, w)
		case call && slices.Contains(promNames, w+"("), slices.Contains(promNames, w):
		case call:
			wrong = append(wrong, "no function "+w)
		default:
			wrong = append(wrong, "no metric "+w)
		}
	}
	for _, m := range metrics {
		for _, l := range named {
			has(m, l)
		}
	}
	for _, l := range any {
		if !slices.ContainsFunc(metrics, func(m string) bool { return labels[m][l] }) {
			wrong = append(wrong, "no label "+l)
		}
	}
	return wrong
}

// rich is a port with every counter that the tables of the exporter and of drivers have
// a name for and the recorded hosts lack.
func rich() *snapshot.Snapshot {
	one := func(names ...string) (c snapshot.Counters) {
		for _, n := range names {
			c = append(c, snapshot.Counter{Name: n, Value: snapshot.Known[uint64](1)})
		}
		return c
	}
	return &snapshot.Snapshot{
		Devices: []snapshot.Device{{Name: "mlx5_9", Driver: snapshot.Known("mlx5_core"), Ports: []snapshot.Port{{
			Number: 1, Netdev: snapshot.Known("eth9"), Counters: one("symbol_error", "link_downed", "port_rcv_errors"),
			HWCounters: one("rp_cnp_ignored", "implied_nak_seq_err", "duplicate_request", "rnr_nak_retry_err", "out_of_buffer"),
		}}}},
		Netdevs: []snapshot.Netdev{{Name: "eth9", Ethtool: one("rx_symbol_err_phy", "rx_fec_uncorrectable_blocks", "outbound_pci_stalled_wr")}},
	}
}
