package demo

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/diag/capture"
)

// The demo plays to its end on this host, says what it promises, and its
// capture is clean: one packet a frame, every ICRC right, the loss visible.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	file := filepath.Join(t.TempDir(), "demo.pcapng")
	cfg := Config{Measure: 20 * time.Millisecond, Capture: file, Seed: 7, Out: &out}
	// Addresses of its own: a demo by hand may be running.
	cfg.Client, cfg.Server = netip.MustParseAddr("127.0.9.1"), netip.MustParseAddr("127.0.9.2")
	if err := Run(t.Context(), cfg); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"RoCE v2", "PORT_ACTIVE", "TCP socket", "RC WRITE", "RC READ", "RC SEND", "RC ATOMIC", "RC SEND, blocking",
		"intact: every byte compared", "sent again", file,
		"simulated fabric", "long: goodput", "The price: burst FCT", "verbena sim run cross-subnet-ecn",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, out.String())
		}
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	totals, err := capture.Decode(f, func(*capture.Packet) error { return nil })
	if err != nil || totals.Wrong() != 0 || totals.Merged != 0 || totals.Packets != totals.Frames || totals.Again == 0 || totals.Packets < 1000 {
		t.Errorf("%v %+v", err, totals)
	}
}

// Nobody waits for measurements whose capture cannot be written in the end; and
// to look leaves no file behind, nor touches one that is there.
func TestCaptureIsLookedAtFirst(t *testing.T) {
	dir := t.TempDir()
	old, fresh := filepath.Join(dir, "old"), filepath.Join(dir, "new")
	if err := os.WriteFile(old, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", old, fresh, os.DevNull} {
		if err := canCreate(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if b, err := os.ReadFile(old); err != nil || string(b) != "kept" {
		t.Errorf("a file that was there: %q, %v", b, err)
	}
	if _, err := os.Stat(fresh); err == nil {
		t.Error("a file is left behind")
	}
	for _, name := range []string{dir, filepath.Join(dir, "no", "file"), filepath.Join(old, "file")} {
		var out bytes.Buffer
		err := Run(t.Context(), Config{Capture: name, Out: &out})
		if err == nil || !strings.Contains(err.Error(), name) || out.Len() > 0 {
			t.Errorf("%q: %v, after %d bytes of report", name, err, out.Len())
		}
	}
}

func TestBusy(t *testing.T) {
	for text, want := range map[string]bool{
		"0.00 0.00 0.00 1/100 1": false, "1.00 9.9 9.9 1/2 3": false, "1.10 0 0 1/2 3": true, "8.71 8 8 9/9 9": true, "": false, "junk": false,
	} {
		if got := busyAt(text, 2) != ""; got != want {
			t.Errorf("%q: busy %v", text, got)
		}
	}
}
