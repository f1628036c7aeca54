//go:build linux

package interop

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
	"github.com/verbena-rdma/verbena/test/interop/guest"
	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// TestSnapshotAgainstIproute2 runs our static program in the guest and holds its recording against what Debian's rdma
// and ip say there: devices, links, settings of the subsystem, and the objects of programs that hold queue pairs in
// several states.
func TestSnapshotAgainstIproute2(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	g := network(t).Guest(1)
	if _, err := staticProgram(); err != nil { // before the clock runs
		t.Fatal(err)
	}
	ctx := within(t, patience)
	at := guestSnapshotProgram(ctx, t, g)

	// A server that waits holds a queue pair in INIT, a listening rping an identifier, and two pingpongs of the guest
	// with itself a pair in RTS.
	background(ctx, t, g, "ibv_rc_pingpong -d rxe0 -g 1 -p 18701")
	background(ctx, t, g, "rping -s -p 18702")
	background(ctx, t, g, "ibv_rc_pingpong -d rxe0 -g 1 -p 18703 -n 1000000000")
	for _, port := range []uint16{18701, 18703} {
		if err := g.WaitListening(ctx, port); err != nil {
			t.Fatal(err)
		}
	}
	background(ctx, t, g, fmt.Sprintf("ibv_rc_pingpong -d rxe0 -g 1 -p 18703 -n 1000000000 %s", g.IP4()))
	// The pair stops as soon as it is there: it would leave no time for anybody else on the guest's one processor.
	if err := g.Until(ctx, `[ "$(rdma res show qp type RC | grep -c 'state RTS')" -ge 2 ] && kill -STOP $(rdma res show qp type RC state RTS | sed -n 's/.* pid \([0-9]*\) .*/\1/p') && rdma res show cm_id | grep -q LISTEN`); err != nil {
		t.Fatal(err)
	}

	inGuest(ctx, t, g, "rm -rf /tmp/rec; "+at+" snapshot -o /tmp/rec --interval 0")
	defer inGuest(ctx, t, g, "rm -rf /tmp/rec /tmp/rec.tgz")
	s := fetchRecording(ctx, t, g, "/tmp/rec")
	d := s.Device("rxe0")
	if d == nil {
		t.Fatalf("no rxe0 in %v; problems %v", s.Devices, s.Problems)
	}
	if d.Kind != snapshot.RXE {
		t.Errorf("kind %s", d.Kind)
	}

	dev := rdmaJSON(ctx, t, g, "dev show rxe0")[0]
	equal(t, "node GUID", d.NodeGUID.Or(""), dev["node_guid"])
	equal(t, "system image GUID", d.SysImageGUID.Or(""), dev["sys_image_guid"])
	equal(t, "index", float64(d.Index.Or(-1)), dev["ifindex"])
	equal(t, "protocol", d.Protocol.Or("")+dev["node_type"].(string), "roceca")
	link := rdmaJSON(ctx, t, g, "link show rxe0/1")[0]
	equal(t, "netdev", d.Ports[0].Netdev.Or(""), link["netdev"])
	equal(t, "netdev index", float64(d.Ports[0].NetIndex.Or(-1)), link["netdev_index"])
	equal(t, "state", map[int]string{1: "DOWN", 4: "ACTIVE"}[d.Ports[0].State.Or(0)], link["state"])
	equal(t, "physical state", map[int]string{3: "DISABLED", 5: "LINK_UP"}[d.Ports[0].PhysState.Or(0)], link["physical_state"])
	// Without -j: rdma 6.1 has no JSON for this.
	system := inGuest(ctx, t, g, "rdma system")
	if want := "netns " + s.RDMA.NetnsMode.Or("?") + " copy-on-fork " + map[bool]string{true: "on", false: "off"}[s.RDMA.CopyOnFork.Or(false)]; !strings.HasPrefix(system, want) {
		t.Errorf("subsystem: ours is %q, theirs %q", want, system)
	}

	// Objects that live from our look to the judge's are the same; the programs above outlive both.
	qps, ok := d.QPs.Get()
	if !ok {
		t.Fatalf("queue pairs: %s", d.QPs.Why())
	}
	var ours []string
	for _, q := range qps {
		ours = append(ours, fmt.Sprintf("%d %d %s %s %s pid %d pdn %d", q.LQPN, q.RQPN.Or(0), q.Type, q.State, q.Comm, q.PID.Or(0), q.PDN.Or(0)))
	}
	sameRows(t, "queue pairs", ours, rdmaJSON(ctx, t, g, "res show qp"), func(r map[string]any) string {
		return fmt.Sprintf("%v %v %v %v %v pid %v pdn %v", whole(r["lqpn"]), whole(r["rqpn"]), r["type"], r["state"], r["comm"], whole(r["pid"]), whole(r["pdn"]))
	})
	for _, state := range []string{"INIT", "RTS"} {
		if !slices.ContainsFunc(qps, func(q snapshot.QP) bool { return q.State == state && q.Type == "RC" }) {
			t.Errorf("no queue pair in %s: %v", state, ours)
		}
	}
	ours = nil
	for _, m := range d.MRs.Or(nil) {
		ours = append(ours, fmt.Sprintf("%d len %d pid %d %s", m.MRN, m.Length, m.PID.Or(0), m.Comm))
	}
	sameRows(t, "memory regions", ours, rdmaJSON(ctx, t, g, "res show mr"), func(r map[string]any) string {
		return fmt.Sprintf("%v len %v pid %v %v", whole(r["mrn"]), whole(r["mrlen"]), whole(r["pid"]), r["comm"])
	})
	ours = nil
	for _, c := range d.CQs.Or(nil) {
		ours = append(ours, fmt.Sprintf("%d cqe %d users %d pid %d %s", c.CQN, c.CQE, c.Users.Or(0), c.PID.Or(0), c.Comm))
	}
	sameRows(t, "completion queues", ours, rdmaJSON(ctx, t, g, "res show cq"), func(r map[string]any) string {
		return fmt.Sprintf("%v cqe %v users %v pid %v %v", whole(r["cqn"]), whole(r["cqe"]), whole(r["users"]), whole(r["pid"]), r["comm"])
	})
	ours = nil
	for _, p := range d.PDs.Or(nil) {
		ours = append(ours, fmt.Sprintf("%d users %d pid %d %s", p.PDN, p.Users.Or(0), p.PID.Or(0), p.Comm))
	}
	sameRows(t, "protection domains", ours, rdmaJSON(ctx, t, g, "res show pd"), func(r map[string]any) string {
		return fmt.Sprintf("%v users %v pid %v %v", whole(r["pdn"]), whole(r["users"]), whole(r["pid"]), r["comm"])
	})
	ids, _ := d.CMIDs.Get()
	if !slices.ContainsFunc(ids, func(c snapshot.CMID) bool {
		return c.State.Or("") == "LISTEN" && c.PS.Or("") == "TCP" && strings.HasSuffix(c.Source.Or(""), ":18702")
	}) && len(rdmaJSON(ctx, t, g, "res show cm_id dev rxe0")) > 0 {
		t.Errorf("no listening identifier of port 18702 in %v", ids)
	}

	addresses(ctx, t, g, s)
	counters := rdmaJSON(ctx, t, g, "statistic show link rxe0/1")[0]
	for _, c := range d.Ports[0].HWCounters {
		if _, ok := counters[c.Name]; !ok {
			t.Errorf("rdma does not know the counter %q", c.Name)
		}
	}
	if len(d.Ports[0].HWCounters) < 10 {
		t.Errorf("only %d counters", len(d.Ports[0].HWCounters))
	}
}

// addresses compares interfaces, MTUs and IP addresses with those of ip.
func addresses(ctx context.Context, t *testing.T, g *guest.Guest, s *snapshot.Snapshot) {
	t.Helper()
	var links []struct {
		Ifname  string
		Ifindex int
		MTU     int
		Address string
		Addrs   []struct {
			Local     string
			Prefixlen int
		} `json:"addr_info"`
	}
	out := inGuest(ctx, t, g, "ip -j addr")
	if err := json.Unmarshal([]byte(out), &links); err != nil || len(links) < 2 {
		t.Fatalf("ip -j addr: %v: %s", err, out)
	}
	for _, l := range links {
		n := s.Netdev(l.Ifname)
		if n == nil {
			t.Errorf("no interface %s", l.Ifname)
			continue
		}
		equal(t, l.Ifname+" index", n.Index.Or(0), l.Ifindex)
		equal(t, l.Ifname+" MTU", n.MTU.Or(0), l.MTU)
		equal(t, l.Ifname+" MAC", n.MAC.Or(""), l.Address)
		var ours, theirs []string
		for _, a := range n.Addresses {
			ours = append(ours, a.Prefix)
		}
		for _, a := range l.Addrs {
			theirs = append(theirs, fmt.Sprintf("%s/%d", a.Local, a.Prefixlen))
		}
		slices.Sort(ours)
		slices.Sort(theirs)
		equal(t, l.Ifname+" addresses", strings.Join(ours, " "), strings.Join(theirs, " "))
	}
}

func equal[T comparable](t *testing.T, what string, ours T, theirs any) {
	t.Helper()
	if any(ours) != theirs {
		t.Errorf("%s: ours is %v, theirs %v", what, ours, theirs)
	}
}

// whole is a number of JSON as an integer, 0 if there is none.
func whole(v any) int64 {
	f, _ := v.(float64)
	return int64(f)
}

// sameRows compares tables without regard to order.
func sameRows(t *testing.T, what string, ours []string, rows []map[string]any, format func(map[string]any) string) {
	t.Helper()
	var theirs []string
	for _, r := range rows {
		if r["ifname"] == "rxe0" {
			theirs = append(theirs, format(r))
		}
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	if len(theirs) == 0 || !slices.Equal(ours, theirs) {
		t.Errorf("%s:\nours\n  %s\ntheirs\n  %s", what, strings.Join(ours, "\n  "), strings.Join(theirs, "\n  "))
	}
}

func rdmaJSON(ctx context.Context, t *testing.T, g *guest.Guest, args string) []map[string]any {
	t.Helper()
	out := inGuest(ctx, t, g, "rdma -j "+args)
	var rows []map[string]any
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		var one map[string]any
		if json.Unmarshal([]byte(out), &one) != nil {
			t.Fatalf("rdma -j %s: %v: %s", args, err, out)
		}
		rows = append(rows, one)
	}
	if len(rows) == 0 {
		t.Fatalf("rdma -j %s says nothing", args)
	}
	return rows
}

func inGuest(ctx context.Context, t *testing.T, g *guest.Guest, command string) string {
	t.Helper()
	r, err := g.Run(ctx, command)
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return r.Stdout
}

// background runs a command in the guest until the test ends.
func background(ctx context.Context, t *testing.T, g *guest.Guest, command string) {
	t.Helper()
	p, err := g.Background(ctx, "exec "+command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
}

// staticProgram is verbena without cgo, built once.
var staticProgram = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "verbena-static-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "verbena")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin, "github.com/verbena-rdma/verbena/cmd/verbena")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build verbena: %w: %s", err, out)
	}
	return os.ReadFile(bin)
})

// guestSnapshotProgram builds our program without cgo and puts it into the guest; the result is its path there.
func guestSnapshotProgram(ctx context.Context, t *testing.T, g *guest.Guest) string {
	t.Helper()
	data, err := staticProgram()
	if err != nil {
		t.Fatal(err)
	}
	const at = "/tmp/verbena"
	if err := g.WriteFile(ctx, at, data, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r, err := g.Run(context.Background(), "rm -f "+at); err != nil || r.Exit != 0 {
			t.Errorf("remove our program from the guest: %v", errors.Join(err, r.Err()))
		}
	})
	return at
}

// fetchRecording brings a recording out of the guest and reads it here.
func fetchRecording(ctx context.Context, t *testing.T, g *guest.Guest, dir string) *snapshot.Snapshot {
	t.Helper()
	inGuest(ctx, t, g, "tar -C "+dir+" -czf "+dir+".tgz .")
	b, err := g.ReadFile(ctx, dir+".tgz")
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Clean(h.Name)
		if h.Typeflag == tar.TypeDir {
			err = root.MkdirAll(name, 0o755)
		} else if data, rerr := io.ReadAll(r); rerr != nil {
			err = rerr
		} else {
			err = root.WriteFile(name, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	rec, err := source.OpenDir(to)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	return read.Host(rec.At(0), read.Options{})
}
