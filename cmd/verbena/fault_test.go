package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/internal/freeport"
)

func TestFaultCheck(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	for path, text := range map[string]string{
		good: "seed: 7\nrules: [{inject: lose, probability: 1%}]\n",
		bad:  "rules:\n  - inject: lose\n    probability: lots\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	call := func(args ...string) (int, string, string) {
		var out, errs strings.Builder
		code := run(t.Context(), app{out: &out, err: &errs}, append([]string{"verbena", "fault"}, args...))
		return code, out.String(), errs.String()
	}
	if code, out, errs := call("check", good); code != 0 || out != good+": 1 rules, seed 7\n" || errs != "" {
		t.Errorf("status %d, %q, %q", code, out, errs)
	}
	if code, _, errs := call("check", good, bad); code != 1 || !strings.Contains(errs, bad+":3:18: rules[0].probability: \"lots\"") {
		t.Errorf("status %d, %q", code, errs)
	}
	if code, out, _ := call("schema"); code != 0 || !strings.Contains(out, `"probability"`) {
		t.Errorf("status %d, %q", code, out)
	}
	if code, _, errs := call(); code != 1 || !strings.Contains(errs, "check or schema") {
		t.Errorf("status %d, %q", code, errs)
	}
}

// perf follows a plan and prints what was injected; the data is right all the
// same.
func TestPerfFollowsAPlan(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs two loopback addresses")
	}
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(plan, []byte("seed: 3\nrules: [{name: holes, inject: lose, every: 50, direction: both}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	port := strconv.Itoa(freeport.Get(t))
	line := func(more ...string) []string {
		return append([]string{"verbena", "perf", "write-bw", "-n", "200", "-s", "8192", "-p", port, "--fault", plan, "-d"}, more...)
	}
	var status int
	var serverErrs, clientOut, clientErrs bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		status = run(ctx, app{out: io.Discard, err: &serverErrs}, line("127.0.6.7"))
	}()
	for ctx.Err() == nil { // until the server listens
		clientOut.Reset()
		clientErrs.Reset()
		code := run(ctx, app{out: &clientOut, err: &clientErrs}, line("127.0.6.8", "127.0.6.7"))
		if !strings.Contains(clientErrs.String(), "refused") {
			if code != 0 {
				t.Errorf("client: status %d", code)
			}
			break
		}
	}
	<-done
	if status != 0 {
		t.Errorf("server: status %d", status)
	}
	for name, s := range map[string]string{"client": clientErrs.String(), "server": serverErrs.String()} {
		if !strings.Contains(s, "faults injected into") || !strings.Contains(s, "(holes)") || !strings.Contains(s, "seed 3") || strings.Contains(s, ": 0 of ") {
			t.Errorf("the %s says %q", name, s)
		}
	}
	if !strings.Contains(clientOut.String(), "8192") {
		t.Errorf("client: %q", clientOut.String())
	}
}
