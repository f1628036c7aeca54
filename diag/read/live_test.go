//go:build linux

package read_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

func marshal(t testing.TB, s *snapshot.Snapshot) string {
	t.Helper()
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// record reads a source through a recorder and gives back both snapshots: that of the
// host and that of the recording.
func record(t *testing.T, src source.Source) (live, recorded *snapshot.Snapshot, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "rec")
	r, err := source.NewRecorder(src, dir)
	if err != nil {
		t.Fatal(err)
	}
	live = read.Host(r, read.Options{})
	if err := r.Commit(); err != nil {
		t.Fatal(err)
	}
	return live, host(t, dir, read.Options{}), dir
}

func sameButForOrigin(t *testing.T, live, recorded *snapshot.Snapshot) {
	t.Helper()
	if recorded.Origin != snapshot.Recorded {
		t.Errorf("origin %s", recorded.Origin)
	}
	recorded.Origin = live.Origin
	if a, b := marshal(t, live), marshal(t, recorded); a != b {
		t.Errorf("a recording is not the host (-live +recorded):\n%s", cmp.Diff(a, b))
	}
}

// A recording answers as the host did, the host being this one.
func TestRecordingIsTheHost(t *testing.T) {
	l, err := source.NewLive(source.LiveConfig{App: source.AppConfig{PID: os.Getpid(), Log: []string{"Failed status 12: wr_id 0 syndrom 0x81"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	live, recorded, _ := record(t, l)
	sameButForOrigin(t, live, recorded)

	// What every Linux has.
	lo := live.Netdev("lo")
	if lo == nil {
		t.Fatal("no loopback interface")
	}
	known(t, "index of lo", lo.Index, 1)
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	known(t, "host", live.Host, name)
	known(t, "process", live.App.PID, os.Getpid())
	known(t, "user", live.App.UID, os.Geteuid())
	if len(live.App.Events) != 1 || live.App.Events[0].Status != 12 || live.App.Events[0].Vendor != 0x81 {
		t.Errorf("events %+v", live.App.Events)
	}
	if live.Taken.IsZero() {
		t.Error("nobody knows when")
	}
	if !live.Routes.IsKnown() || !live.Rules.IsKnown() {
		t.Errorf("routes %v, rules %v", live.Routes.Why(), live.Rules.Why())
	}
}

// The same over every sample tree: a recording of a recording is that recording.
func TestRecordingOfARecording(t *testing.T) {
	trees, err := filepath.Glob("testdata/*.tree")
	if err != nil || len(trees) < 7 {
		t.Fatal(trees, err)
	}
	for _, tree := range trees {
		t.Run(strings.TrimSuffix(filepath.Base(tree), ".tree"), func(t *testing.T) {
			b, err := os.ReadFile(tree)
			if err != nil {
				t.Fatal(err)
			}
			from := t.TempDir()
			plant(t, from, string(b))
			rec, err := source.OpenDir(from)
			if err != nil {
				t.Fatal(err)
			}
			defer rec.Close()
			first, second, _ := record(t, rec.At(0))
			sameButForOrigin(t, first, second)
		})
	}
}

// --sysfs-root and --proc-root: files come from there, links inside are followed and
// none out of it.
func TestOtherRoots(t *testing.T) {
	root := t.TempDir()
	dev := filepath.Join(root, "sys/devices/pci0/0000:3b:00.0/infiniband/mlx5_0")
	write(t, filepath.Join(dev, "node_type"), "1: CA\n")
	write(t, filepath.Join(dev, "ports/1/state"), "4: ACTIVE\n")
	write(t, filepath.Join(root, "proc/sys/kernel/hostname"), "other\n")
	class := filepath.Join(root, "sys/class/infiniband")
	if err := os.MkdirAll(class, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"mlx5_0": "../../devices/pci0/0000:3b:00.0/infiniband/mlx5_0",
		"evil":   "../../../../../../../../../../etc",
	} {
		if err := os.Symlink(target, filepath.Join(class, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../../0000:3b:00.0", filepath.Join(dev, "device")); err != nil {
		t.Fatal(err)
	}
	l, err := source.NewLive(source.LiveConfig{SysfsRoot: filepath.Join(root, "sys"), ProcRoot: filepath.Join(root, "proc")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	live, recorded, _ := record(t, l)
	sameButForOrigin(t, live, recorded)
	known(t, "host", live.Host, "other")
	d := live.Device("mlx5_0")
	if d == nil || len(d.Ports) != 1 {
		t.Fatalf("devices %v", live.Devices)
	}
	known(t, "state", d.Ports[0].State, 4)
	if d.PCI == nil || d.PCI.Address != "0000:3b:00.0" {
		t.Errorf("PCI %v", d.PCI)
	}
	if evil := live.Device("evil"); evil != nil && evil.NodeType.IsKnown() {
		t.Errorf("a link out of the tree was followed: %v", evil)
	}
	if got := strings.Join(problems(live), "\n"); !strings.Contains(got, "out of the tree") {
		t.Errorf("nobody says that a link leaves the tree:\n%s", got)
	}
}

func TestRecorderRefusesAFullDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "mine"), "x")
	if _, err := source.NewRecorder(memory{}, dir); err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "1 entries") {
		t.Errorf("error %v", err)
	}
}

func TestRecorderLeavesNothingOrAll(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "rec")
	r, err := source.NewRecorder(memory{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	read.Host(r, read.Options{})
	if _, err := os.Stat(dir); err == nil {
		t.Error("the recording is there before it is whole")
	}
	r.Abort()
	if left, _ := os.ReadDir(parent); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	// An empty directory is replaced; two instants are two.
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if r, err = source.NewRecorder(memory{"proc/cmdline": "a"}, dir); err != nil {
		t.Fatal(err)
	}
	read.Host(r, read.Options{})
	r.Next()
	read.Host(r, read.Options{})
	if err := r.Commit(); err != nil {
		t.Fatal(err)
	}
	rec, err := source.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if rec.Times() != 2 {
		t.Errorf("%d instants", rec.Times())
	}
	w, err := read.Window(rec, read.Options{})
	if err != nil || w.Before == nil {
		t.Fatal(w, err)
	}
	known(t, "cmdline before", w.Before.Cmdline, "a")
}

// A recording that would be too long is none, and says what to do.
func TestRecorderIsBounded(t *testing.T) {
	for _, c := range []struct {
		limit int64
		files memory
		ok    bool
	}{
		{1 << 20, memory{"proc/cmdline": "a"}, true},
		{8 << 10, memory{"proc/cmdline": strings.Repeat("a", 16<<10)}, false},
		{8 << 10, memory{"proc/cmdline": "a"}, false}, // many small answers
	} {
		parent := t.TempDir()
		r, err := source.NewRecorder(c.files, filepath.Join(parent, "rec"))
		if err != nil {
			t.Fatal(err)
		}
		r.Limit(c.limit)
		r.Limit(source.MaxRecording) // never more than it was
		for range 20 {
			read.Host(r, read.Options{})
			r.Next()
		}
		err = r.Commit()
		if c.ok != (err == nil) || err != nil && (!strings.Contains(err.Error(), "rec: longer than a recording may be") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("limit %d: %v", c.limit, err)
		}
		if left, _ := os.ReadDir(parent); len(left) != map[bool]int{true: 1}[c.ok] {
			t.Errorf("limit %d: left behind: %v", c.limit, left)
		}
	}
}
