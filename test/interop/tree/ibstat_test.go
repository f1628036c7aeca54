//go:build linux

package tree

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/diag/listing"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// statLines are command lines of ibstat; DEV stands for each device of a tree.
var statLines = []struct {
	args string
	o    listing.IBStatOptions
}{
	{"", listing.IBStatOptions{}},
	{"-l", listing.IBStatOptions{List: true}},
	{"-s", listing.IBStatOptions{Short: true}},
	{"-p", listing.IBStatOptions{GUIDs: true}},
	{"-l -s", listing.IBStatOptions{List: true, Short: true}},
	{"-l -p", listing.IBStatOptions{List: true, GUIDs: true}},
	{"-s -p", listing.IBStatOptions{Short: true, GUIDs: true}},
	{"nosuch", listing.IBStatOptions{Device: "nosuch"}},
	{"-s nosuch", listing.IBStatOptions{Device: "nosuch", Short: true}},
	{"-p nosuch", listing.IBStatOptions{Device: "nosuch", GUIDs: true}},
	{"-l nosuch", listing.IBStatOptions{Device: "nosuch", List: true}},
	{"nosuch 1", listing.IBStatOptions{Device: "nosuch", Port: "1"}},
	{"DEV", listing.IBStatOptions{Device: "DEV"}},
	{"-s DEV", listing.IBStatOptions{Device: "DEV", Short: true}},
	{"-l DEV", listing.IBStatOptions{Device: "DEV", List: true}},
	{"-p DEV", listing.IBStatOptions{Device: "DEV", GUIDs: true}},
	{"DEV 0", listing.IBStatOptions{Device: "DEV", Port: "0"}},
	{"DEV 1", listing.IBStatOptions{Device: "DEV", Port: "1"}},
	{"DEV 2", listing.IBStatOptions{Device: "DEV", Port: "2"}},
	{"DEV 3", listing.IBStatOptions{Device: "DEV", Port: "3"}},
	{"DEV 99", listing.IBStatOptions{Device: "DEV", Port: "99"}},
	{"DEV 0x1", listing.IBStatOptions{Device: "DEV", Port: "0x1"}},
	{"DEV 1x", listing.IBStatOptions{Device: "DEV", Port: "1x"}},
	{"DEV x", listing.IBStatOptions{Device: "DEV", Port: "x"}},
	{"DEV -- -1", listing.IBStatOptions{Device: "DEV", Port: "-1"}},
	{"-s DEV 1", listing.IBStatOptions{Device: "DEV", Port: "1", Short: true}},
	{"-s DEV 2", listing.IBStatOptions{Device: "DEV", Port: "2", Short: true}},
	{"-p DEV 1", listing.IBStatOptions{Device: "DEV", Port: "1", GUIDs: true}},
	{"-p DEV 9", listing.IBStatOptions{Device: "DEV", Port: "9", GUIDs: true}},
	{"-l DEV 1", listing.IBStatOptions{Device: "DEV", Port: "1", List: true}},
}

// same wants Debian's bytes and exit status.
func same(t *testing.T, what string, want, got result) {
	t.Helper()
	if diff := cmp.Diff(want.out, got.out); diff != "" || want.status != got.status {
		t.Errorf("%s: exit %d, ours %d (%q, ours %q) -Debian +ours\n%s", what, want.status, got.status, want.err, got.err, diff)
	}
	if got.status != 0 && strings.Count(got.err, "\n") != 1 {
		t.Errorf("%s: says not one line but %q", what, got.err)
	}
}

// Every tree, every command line.
func TestIBStat(t *testing.T) {
	judge.Need(t, "infiniband-diags")
	for name, text := range trees(t) {
		t.Run(name, func(t *testing.T) {
			p := plant(t, filepath.Join(t.TempDir(), "sys"), text)
			inside(t, p, "", func() {
				s, printed := host(t), 0
				for _, l := range statLines {
					devices := []string{""}
					if strings.Contains(l.args, "DEV") {
						devices = p.devices
					}
					for _, d := range devices {
						printed += statSame(t, s, strings.ReplaceAll(l.args, "DEV", d), l.o, d)
					}
				}
				if printed < 500 && name != "none" && name != "siw" {
					t.Errorf("Debian's ibstat printed only %d bytes", printed)
				}
			})
		})
	}
}

// statSame compares one command line, and returns how much Debian's program printed.
func statSame(t *testing.T, s *snapshot.Snapshot, args string, o listing.IBStatOptions, device string) int {
	t.Helper()
	if o.Device == "DEV" {
		o.Device = device
	}
	want := run(t, "ibstat "+args)
	same(t, "ibstat "+args, want, listed(listing.IBStat(s, o)))
	return len(want.out)
}
