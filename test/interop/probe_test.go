//go:build linux

package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/probe"
	"github.com/verbena-rdma/verbena/test/interop/guest"
	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// TestProbeOfRxe probes a host whose UDP 4791 belongs to rdma_rxe. Without a
// packet socket nobody knows what arrives, which is not "blocked"; with one the
// probes are seen. rdma_rxe answers none of them.
func TestProbeOfRxe(t *testing.T) {
	judge.Need(t, "rxe")
	n := network(t)
	g := n.Guest(1)
	ctx := within(t, patience)
	ours, err := ourProgram()
	if err != nil {
		t.Fatal(err)
	}
	static := filepath.Join(filepath.Dir(ours), "verbena-static")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", static, "github.com/verbena-rdma/verbena/cmd/verbena")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build verbena: %v\n%s", err, out)
	}
	program, err := os.ReadFile(static)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.WriteFile(ctx, "/tmp/verbena", program, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		options string
		verdict probe.Verdict
		heardBy string
		finding bool
	}{
		{"--no-capture", probe.CannotTell, "", true},
		{"", probe.Open, "capture", false},
	} {
		for _, fam := range allFamilies {
			t.Run(fmt.Sprintf("listener %q %v", c.options, fam), func(t *testing.T) {
				ctx := within(t, patience)
				port := 14800 + 2*i + int(fam)/6
				p, err := g.Background(ctx, fmt.Sprintf("/tmp/verbena probe --listen %s --port %d", c.options, port))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(p.Kill)
				if err := g.WaitListening(ctx, uint16(port)); err != nil {
					t.Fatal(err)
				}
				before := rxeSent(ctx, t, g)
				cmd := n.Command(ctx, ours, "probe", "--json", "--port", fmt.Sprint(port), "--burst", "0", fam.guest(g).String())
				var out, errs bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				_ = cmd.Run() // the document says it all
				var doc struct{ Hosts []probe.Result }
				if err := json.Unmarshal(out.Bytes(), &doc); err != nil || len(doc.Hosts) != 1 {
					t.Fatalf("%v\n%s\n%s", err, out.String(), errs.String())
				}
				r := &doc.Hosts[0]
				if r.Forward.Verdict != c.verdict || r.Forward.HeardBy != c.heardBy || r.Reverse.Verdict != probe.Open || r.Reverse.HeardBy != "socket" {
					t.Errorf("forward %q by %q, reverse %q by %q\n%s", r.Forward.Verdict, r.Forward.HeardBy, r.Reverse.Verdict, r.Reverse.HeardBy, out.String())
				}
				found := false
				for _, f := range r.Findings {
					if strings.HasPrefix(f.ID, "port-") {
						found = true
						if f.ID != "port-unknown" || f.Direction != "forward" || f.Status != probe.Unknown {
							t.Errorf("finding %+v", f)
						}
					}
				}
				if found != c.finding {
					t.Errorf("a finding about the port: %v, want %v", found, c.finding)
				}
				if len(r.There.Devices) != 1 || r.There.Devices[0] != (probe.Device{Name: guest.RxeDevice}) {
					t.Errorf("devices there: %+v", r.There.Devices)
				}
				if after := rxeSent(ctx, t, g); after != before {
					t.Errorf("rdma_rxe has sent %d packets", after-before)
				}
			})
		}
	}
}

// rxeSent is how many packets rdma_rxe has sent.
func rxeSent(ctx context.Context, t *testing.T, g *guest.Guest) uint64 {
	t.Helper()
	all, err := g.RxeCounters(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n, ok := all["sent_pkts"]
	if !ok {
		t.Fatalf("no sent_pkts in %v", all)
	}
	return n
}
