package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/internal/freeport"
)

// TestEveryToolsJSON runs every test of perftest against itself under a set of
// options each, and wants valid JSON with sane numbers from both ends and from
// --out_json.
func TestEveryToolsJSON(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("needs two loopback addresses")
	}
	for _, tool := range tools {
		if !strings.HasPrefix(tool.name, "ib_") {
			continue
		}
		latency := strings.HasSuffix(tool.name, "_lat")
		sets := []string{"-n 20", "-n 20 -m 256", "-n 20 -F -x -1"}
		if latency {
			sets = append(sets, "-n 20 -U", "-n 20 -H --histogram", "-n 5")
		} else {
			sets = append(sets, "-n 20 -b", "-n 20 -q 2 -N", "-n 20 -l 5", "-n 20 --report_gbits", "-n 20 -b --report-both", "-n 20 -Q 7 -t 9")
		}
		if !strings.Contains(tool.name, "write") {
			sets = append(sets, "-n 20 -e")
		}
		if !strings.Contains(tool.name, "atomic") {
			sets = append(sets, "-n 5 -a", "-n 20 -s 1", "-D 1 -f 0 -s 1K")
		}
		for _, set := range sets {
			t.Run(tool.name+" "+set, func(t *testing.T) {
				both(t, tool.name, strings.Fields(set), latency)
			})
		}
	}
}

func both(t *testing.T, name string, options []string, latency bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	port := strconv.Itoa(freeport.Get(t))
	type end struct {
		status    int
		out, errs bytes.Buffer
	}
	file := filepath.Join(t.TempDir(), "report.json")
	line := func(device string, more ...string) []string {
		return append(append([]string{name, "--json", "-p", port, "-d", device}, options...), more...)
	}
	var server, client end
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.status = run(ctx, app{out: &server.out, err: &server.errs}, line("127.0.6.5"))
	}()
	for ctx.Err() == nil { // until the server listens
		client = end{}
		client.status = run(ctx, app{out: &client.out, err: &client.errs}, line("127.0.6.6", "--out_json", "--out_json_file", file, "127.0.6.5"))
		if !strings.Contains(client.errs.String(), "refused") {
			break
		}
	}
	<-done
	for who, e := range map[string]*end{"server": &server, "client": &client} {
		var doc struct {
			Error    *string          `json:"error"`
			Verified *bool            `json:"verified"`
			Results  []map[string]any `json:"results"`
		}
		if err := json.Unmarshal(e.out.Bytes(), &doc); err != nil || e.status != 0 || doc.Error != nil || doc.Verified == nil || !*doc.Verified {
			t.Fatalf("%s: status %d, %v\n%s%s", who, e.status, err, e.out.String(), e.errs.String())
		}
		if len(doc.Results) == 0 && who == "client" {
			t.Errorf("%s: no results\n%s", who, e.out.String())
		}
		need := []string{"bytes", "iterations", "bw_average_gbps", "msg_rate_mpps"}
		if latency {
			need = []string{"bytes", "iterations", "t_avg_us"}
		}
		for _, r := range doc.Results {
			for _, k := range need {
				if v, ok := r[k].(float64); !ok || v < 0 {
					t.Errorf("%s: %s is %v", who, k, r[k])
				}
			}
			for k, v := range r {
				if f, ok := v.(float64); ok && f < 0 {
					t.Errorf("%s: %s is %v", who, k, f)
				}
			}
		}
	}
}
