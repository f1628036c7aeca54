package report_test

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// table reads a CSV file, all of whose lines must have as many cells as the
// first.
func table(t *testing.T, b []byte) (head []string, rows []map[string]string) {
	t.Helper()
	all, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range all[1:] {
		m := map[string]string{}
		for i, c := range line {
			m[all[0][i]] = c
		}
		rows = append(rows, m)
	}
	return all[0], rows
}

// Times keep their picoseconds; numbers are those of the run; instants that
// never come are empty.
func TestFlowsCSV(t *testing.T) {
	_, rows := table(t, written(t, writeWith(sample(), report.WriteFlowsCSV)))
	if len(rows) != 8 {
		t.Fatalf("%d lines", len(rows))
	}
	for name, want := range map[string]string{
		"id": "0", "group": "incast", "src": "host2", "dst": "host0", "src_port": "50000", "dst_port": "4791", "state": "finished",
		"received_ns": "340000.500", "finish_ns": "342000.999", "fct_ns": "342000.999", "base_fct_ns": "90000.000",
		"slowdown": "3.8000", "bytes": "1000000", "marks": "200", "cnps_sent": "40", "cnps_handled": "39",
		"path": "host2:eth0 leaf0:Ethernet0", "op": "write", "service": "RC", "prio": "3",
	} {
		if rows[0][name] != want {
			t.Errorf("%s is %q, want %q", name, rows[0][name], want)
		}
	}
	if r := rows[5]; r["finish_ns"] != "" || r["fct_ns"] != "" || r["state"] != "running" || r["goodput_bps"] != "20000000000" || r["silent"] == "" {
		t.Errorf("a running flow: %v", r)
	}
	if r := rows[6]; r["state"] != "failed" || r["status"] != "RETRY_EXC" {
		t.Errorf("a failed flow: %v", r)
	}
}

func TestPortsCSV(t *testing.T) {
	_, rows := table(t, written(t, writeWith(sample(), report.WritePortsCSV)))
	seen := map[string]map[string]string{}
	for _, r := range rows {
		seen[r["node"]+":"+r["port"]] = r
	}
	if len(seen) != 6+5+5+2+2 {
		t.Errorf("%d ports", len(seen))
	}
	for name, want := range map[string]string{
		"prio": "3", "peer": "host0:eth0", "rate_bps": "100000000000", "delay_ns": "1000.000", "marked": "800",
		"peak_queue_bytes": "812345", "mean_queue_bytes": "301234.5", "kmin_bytes": "100000", "port_tx_busy_ns": "345000.000",
	} {
		if got := seen["leaf0:Ethernet0"][name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := seen["leaf0:Ethernet12"]; got["pfc_xoff_tx"] != "1234" || got["pfc_xon_tx"] != "1233" || got["rx_drops"] != "2" || got["port_global_pauses"] != "1" {
		t.Errorf("leaf0:Ethernet12: %v", got)
	}
	if got := seen["host1:eth0"]; got["prio"] != "" || got["port_tx_busy_ns"] != "0.000" {
		t.Errorf("a port that counted nothing: %v", got)
	}
}

// Columns of a whole port stand once, however many priorities there are.
func TestPortsCSVWholePortOnce(t *testing.T) {
	r := sample()
	r.Nodes[leaf0].Ports[0].Prio[6].TxPackets = 5
	_, rows := table(t, written(t, writeWith(r, report.WritePortsCSV)))
	var busy []string
	for _, row := range rows {
		if row["node"] == "leaf0" && row["port"] == "Ethernet0" {
			busy = append(busy, row["prio"]+":"+row["port_tx_busy_ns"])
		}
	}
	if got := strings.Join(busy, " "); got != "3:345000.000 6:" {
		t.Errorf("got %q", got)
	}
}

func TestPausesAndDropsCSV(t *testing.T) {
	_, rows := table(t, written(t, writeWith(sample(), report.WritePausesCSV)))
	if len(rows) != 10 {
		t.Fatalf("%d pauses", len(rows))
	}
	if r := rows[0]; r["time_ns"] != "20000.000" || r["by_port"] != "leaf0:Ethernet12" || r["stopped_port"] != "spine0:Ethernet0" ||
		r["xoff"] != "1" || r["held_bytes"] != "96100" || r["xoff_limit_bytes"] != "96000" || r["egress"] != "leaf0:Ethernet0" || r["egress_stopped"] != "0" {
		t.Errorf("first: %v", r)
	}
	if r := rows[7]; r["cause"] != "slow receiver" || r["egress"] != "" {
		t.Errorf("of a host: %v", r)
	}
	_, rows = table(t, written(t, writeWith(sample(), report.WriteDropsCSV)))
	if len(rows) != 3 || rows[0]["reason"] != "headroom exceeded" || rows[0]["ingress"] != "leaf0:Ethernet12" || rows[2]["flow"] != "-1" {
		t.Errorf("drops: %v", rows)
	}
}

func TestSeriesCSV(t *testing.T) {
	r := sample()
	_, rows := table(t, written(t, writeWith(r, report.WriteSeriesCSV)))
	n := 0
	for i := range r.Series {
		n += len(r.Series[i].Values)
	}
	if len(rows) != n {
		t.Fatalf("%d lines, want %d", len(rows), n)
	}
	if got := rows[1]; got["kind"] != "queue" || got["unit"] != "bytes" || got["of"] != "leaf0:Ethernet0" || got["prio"] != "3" || got["time_ns"] != "5000.000" || got["value"] != "16086" {
		t.Errorf("second sample: %v", got) // 812345·1·2/101 = 16086.04
	}
}

// Every column that has a unit says it; every output of a name that holds
// separators, quotes or control characters is one cell of one line.
func TestCSVHostileNames(t *testing.T) {
	r := sample()
	spoil(r)
	for _, write := range []func(writer, *result.Run) error{
		report.WriteFlowsCSV, report.WritePortsCSV, report.WritePausesCSV, report.WriteDropsCSV, report.WriteSeriesCSV,
	} {
		b := written(t, writeWith(r, write))
		table(t, b)
		if bytes.ContainsAny(b, "\x1b\x00\r") {
			t.Errorf("control characters in %q", b[:200])
		}
	}
	_, rows := table(t, written(t, writeWith(r, report.WriteFlowsCSV)))
	if got := rows[0]["group"]; !strings.Contains(got, `<script>alert("1")</script>`) {
		t.Errorf("the text of a name is lost: %q", got)
	}
}

// A series without values, ports without peers, flows without path.
func TestCSVOfAlmostNothing(t *testing.T) {
	r := &result.Run{
		Nodes:  []result.Node{{Ports: []result.Port{{Peer: -1}}}},
		Flows:  []result.Flow{{SrcNode: 5, DstNode: -1, Finish: sim.Never, Received: sim.Never}},
		Series: []result.Series{{Kind: result.QueueBytes}, {Kind: 99, Values: []int64{1}}},
	}
	for _, write := range []func(writer, *result.Run) error{
		report.WriteFlowsCSV, report.WritePortsCSV, report.WritePausesCSV, report.WriteDropsCSV, report.WriteSeriesCSV,
	} {
		table(t, written(t, writeWith(r, write)))
	}
}
