package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/diag/export"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// scraped is what the exporter says of a recording, read with given options.
func scraped(t *testing.T, src source.Source, opt read.Options) string {
	t.Helper()
	var b strings.Builder
	c := export.New(func() *snapshot.Snapshot { return read.Host(src, opt) }, export.Options{Compat: true})
	if err := export.Text(c, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// oddTree opens a tree: lines "name = content", or "name ! why it cannot be read", of
// files below sys/class/infiniband.
func oddTree(t *testing.T, tree string) source.Source {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(tree) {
		line = strings.TrimSpace(line)
		name, text, known := strings.Cut(line, " = ")
		if !known {
			if name, text, known = strings.Cut(line, " ! "); !known {
				continue
			}
			name += ".err"
		}
		b.WriteString("-- t0/root/sys/class/infiniband/" + name + " --\n" + text + "\n")
	}
	rec, err := source.ParseArchive("odd", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec.At(0)
}

// What has made other exporters fail costs one sample here: each of the odd places of
// public reports, in a tree of its own, read as the exporter reads.
func TestExporterSurvivesOddFiles(t *testing.T) {
	const port = "d/ports/1/"
	const healthy = "d/node_type = 1: CA\n" + port + "state = 4: ACTIVE\n" + port + "link_layer = Ethernet\n" + port + "hw_counters/out_of_sequence = 3\n"
	for _, c := range []struct {
		name, tree string
		has, hasNo []string
		problems   string // the number, "" for any
	}{
		{
			"counters of a function without PMA",
			port + "counters/port_xmit_data = N/A (no PMA)\n" + port + "counters/symbol_error = N/A (no PMA)\n" + port + "counters/port_rcv_data = 250",
			[]string{`rdma_port_receive_bytes_total{device="d",netdev="",port="1"} 1000`, "rdma_exporter_unreadable_values 2"},
			[]string{"rdma_port_transmit_bytes_total", "rdma_port_symbol_errors_total", "node_infiniband_port_data_transmitted_bytes_total"},
			"2",
		},
		{
			"bnxt_re has no counters directory", port + "hw_counters/tx_cnp_pkts = 6",
			[]string{`raw="tx_cnp_pkts"} 6`, "rdma_exporter_unreadable_values 0"},
			[]string{"rdma_port_transmit_bytes_total"},
			"0",
		},
		{
			"no hw_counters directory either", port + "counters/port_xmit_packets = 5",
			[]string{`rdma_port_transmit_packets_total{device="d",netdev="",port="1"} 5`},
			nil, "0",
		},
		{
			"names of hfi1 with commas, blanks and quotes",
			port + "hw_counters/Rcv Full, ctxt = 7\n" + port + `hw_counters/a"b = 8` + "\n" + port + "hw_counters/DC,Total = 9",
			[]string{`raw="Rcv Full, ctxt"} 7`, `raw="a\"b"} 8`, `raw="DC,Total"} 9`},
			nil, "0",
		},
		{
			"rate of an empty cage", port + "rate ! EINVAL",
			[]string{`rdma_port_state{device="d",netdev="",port="1"} 4`, `rate=""} 1`},
			[]string{"rdma_port_rate_bytes_per_second"},
			"1",
		},
		{
			"attributes of empty GID slots",
			port + "gids/0 = fe80:0000:0000:0000:0000:0000:0000:0001\n" + port + "gid_attrs/ndevs/0 ! EINVAL\n" + port + "gid_attrs/types/0 ! EINVAL\n" +
				port + "gids/1 = 0000:0000:0000:0000:0000:ffff:0a00:0001\n" + port + "gid_attrs/ndevs/1 = eth7\n" + port + "gid_attrs/types/1 ! EINVAL\n" +
				port + "gids/2 = 0000:0000:0000:0000:0000:0000:0000:0000\n" + port + "gid_attrs/ndevs/2 ! EINVAL",
			[]string{`rdma_port_state{device="d",netdev="eth7",port="1"} 4`},
			nil, "0",
		},
		{
			"a table of GIDs that cannot be listed", port + "gids ! EIO",
			[]string{`rdma_port_state{device="d",netdev="",port="1"} 4`},
			nil, "1",
		},
		{
			"a directory of counters that cannot be listed", port + "counters ! EIO", []string{`raw="out_of_sequence"} 3`}, []string{"rdma_port_transmit_bytes_total"}, "1",
		},
		{
			"files of every kind of nonsense",
			port + "counters/port_xmit_data = 0x10\n" + port + "counters/port_rcv_data = -1\n" + port + "counters/port_xmit_packets = 99999999999999999999\n" +
				port + "counters/port_rcv_packets = \n" + port + "counters/link_downed = 1 2\n" + port + "phys_state = LinkUp\n" + port + "rate = fast",
			[]string{`raw="out_of_sequence"} 3`, "rdma_exporter_unreadable_values 6"},
			[]string{"rdma_port_transmit_bytes_total", "rdma_port_receive_bytes_total", "rdma_port_link_downed_total", "rdma_port_rate_bytes_per_second", "rdma_port_physical_state{"},
			"",
		},
		{
			"a device whose files all fail", "e/node_type ! EIO\ne/ports ! EIO\ne/fw_ver ! ETIMEDOUT",
			[]string{`rdma_port_state{device="d",netdev="",port="1"} 4`, `rdma_device_info{board_id="",comm="",device="e"`, "rdma_exporter_devices 2"},
			nil, "3",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := scraped(t, oddTree(t, healthy+c.tree), (&exporterFlags{}).options())
			for _, want := range append(c.has, `rdma_hw_raw_total{device="d",netdev="`) {
				if !strings.Contains(got, want) {
					t.Errorf("no %s in\n%s", want, got)
				}
			}
			for _, not := range c.hasNo {
				if strings.Contains(got, "\n"+not) {
					t.Errorf("there is %s", not)
				}
			}
			if c.problems != "" && !strings.Contains(got, "rdma_exporter_problems "+c.problems+"\n") {
				t.Errorf("not %s problems:\n%s", c.problems, got)
			}
		})
	}
}

// Of a device that is excluded not a file is touched, whatever it would answer.
func TestExporterLeavesExcludedDevicesAlone(t *testing.T) {
	src := &touched{Source: oddTree(t, "d/node_type = 1: CA\ne/node_type = 1: CA\ne/ports/1/state = 4: ACTIVE\ne/ports/1/counters/symbol_error = 1\n")}
	got := scraped(t, src, (&exporterFlags{exclude: []string{"e"}}).options())
	if strings.Contains(got, `device="e"`) || !strings.Contains(got, `device="d"`) {
		t.Error(got)
	}
	for _, name := range src.names {
		if strings.Contains(name, "/infiniband/e/") || strings.HasSuffix(name, "/e") {
			t.Errorf("%s was read", name)
		}
	}
	if len(src.names) == 0 {
		t.Error("nothing was read")
	}
}

// touched notes what is asked of a source.
type touched struct {
	source.Source
	names []string
}

func (s *touched) ReadFile(name string) ([]byte, error) {
	s.names = append(s.names, name)
	return s.Source.ReadFile(name)
}

func (s *touched) ReadDir(name string) ([]string, error) {
	s.names = append(s.names, name)
	return s.Source.ReadDir(name)
}

func (s *touched) ReadLink(name string) (string, error) {
	s.names = append(s.names, name)
	return s.Source.ReadLink(name)
}

func (s *touched) Ask(query string) ([]byte, error) {
	s.names = append(s.names, query)
	return s.Source.Ask(query)
}

// What the exporter does not read it does not say either: of hosts of every driver it says
// what it would say had it read all of them, and asks for much less.
func TestExporterReadsLessAndSaysTheSame(t *testing.T) {
	names, err := filepath.Glob("../../diag/doctor/testdata/healthy/*.txtar")
	if err != nil || len(names) < 10 {
		t.Fatal(names, err)
	}
	names = append(names, "../../diag/export/testdata/odd.txtar")
	// How many values could not be read differs, and how long it took.
	own := regexp.MustCompile(`(?m)^(rdma_exporter_(problems|unreadable_values|scrape_duration_seconds)|rdma_qps_without_counters.*) .*\n|^# .*\n`)
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			rec, err := source.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer rec.Close()
			src := &touched{Source: rec.At(0)}
			all := own.ReplaceAllString(scraped(t, src, read.Options{}), "")
			n := len(src.names)
			src.names = nil
			less := own.ReplaceAllString(scraped(t, src, (&exporterFlags{}).options()), "")
			if diff := cmp.Diff(strings.Split(all, "\n"), strings.Split(less, "\n")); diff != "" {
				t.Errorf("a host that is read whole, and as the exporter does (-whole +exporter):\n%s", diff)
			}
			for _, q := range src.names {
				for _, not := range []string{source.QueryRoutes, source.QueryNeighbours, source.QueryNFT, source.QueryIPTables, "features", "/hash/", "pkeys", "proc/net", "rdma/attr", "rdma/statmode"} {
					if strings.Contains(q, not) {
						t.Errorf("%s was asked for", q)
					}
				}
			}
			if len(src.names) >= n {
				t.Errorf("%d places are read, %d by who reads all", len(src.names), n)
			}
		})
	}
}
