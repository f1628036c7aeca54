package export_test

import (
	"encoding/json"
	"os"
	"regexp"
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
