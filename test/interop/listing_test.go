//go:build linux

package interop

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/diag/listing"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
	"github.com/verbena-rdma/verbena/test/interop/guest"
	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// staticVerbena is the verbena command without cgo, built once.
var staticVerbena = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "verbena-static-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "verbena")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin, "github.com/verbena-rdma/verbena/cmd/verbena")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build verbena: %w\n%s", err, out)
	}
	return os.ReadFile(bin)
})

// guestScript runs a script in the guest.
func guestScript(ctx context.Context, t *testing.T, g *guest.Guest, script string) guest.Result {
	t.Helper()
	r, err := g.Run(ctx, script)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// guestLines runs many command lines in one go: each costs a connection otherwise.
func guestLines(ctx context.Context, t *testing.T, g *guest.Guest, lines []string) []guest.Result {
	t.Helper()
	const begin, end = "\x01", "\x02"
	var script strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&script, "printf '\\001'; %s 2>/dev/null; printf '\\002%%d' $?\n", l)
	}
	r := guestScript(ctx, t, g, script.String())
	parts := strings.Split(r.Stdout, begin)
	if len(parts) != len(lines)+1 {
		t.Fatalf("%d of %d command lines were run", len(parts)-1, len(lines))
	}
	all := make([]guest.Result, len(lines))
	for i, p := range parts[1:] {
		out, status, ok := strings.Cut(p, end)
		n, err := strconv.Atoi(strings.TrimSpace(status))
		if !ok || err != nil {
			t.Fatalf("%s: no exit status in %q", lines[i], p)
		}
		all[i] = guest.Result{Command: lines[i], Stdout: out, Exit: n}
	}
	return all
}

// TestListingsAsDebianPrintsThem holds objects open in the guest, has our program take
// a snapshot there, and wants of every command line the bytes and the exit status of
// Debian's programs.
func TestListingsAsDebianPrintsThem(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	g := network(t).Guest(1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	bin, err := staticVerbena()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.WriteFile(ctx, "/tmp/verbena-listing", bin, 0o755); err != nil {
		t.Fatal(err)
	}
	hold(ctx, t, g)
	s := guestSnapshot(ctx, t, g)

	type listed struct {
		line string
		out  func() ([]byte, error)
	}
	all := []listed{
		{"ibv_devices", func() ([]byte, error) { return listing.Devices(s), nil }},
		{"ibv_devinfo", func() ([]byte, error) { return listing.DevInfo(s, listing.DevInfoOptions{}) }},
		{"ibv_devinfo -v", func() ([]byte, error) { return listing.DevInfo(s, listing.DevInfoOptions{Verbose: true}) }},
		{"ibv_devinfo -l", func() ([]byte, error) { return listing.DevInfo(s, listing.DevInfoOptions{List: true}) }},
		{"ibv_devinfo -d rxe0 -i 1", func() ([]byte, error) { return listing.DevInfo(s, listing.DevInfoOptions{Device: "rxe0", Port: 1}) }},
		{"ibv_devinfo -d rxe0 -i 2", func() ([]byte, error) { return listing.DevInfo(s, listing.DevInfoOptions{Device: "rxe0", Port: 2}) }},
		{"ibv_devinfo -d nodev", func() ([]byte, error) { return listing.DevInfo(s, listing.DevInfoOptions{Device: "nodev"}) }},
		{"ibstat", func() ([]byte, error) { return listing.IBStat(s, listing.IBStatOptions{}) }},
		{"ibstat -l", func() ([]byte, error) { return listing.IBStat(s, listing.IBStatOptions{List: true}) }},
		{"ibstat -s", func() ([]byte, error) { return listing.IBStat(s, listing.IBStatOptions{Short: true}) }},
		{"ibstat -p", func() ([]byte, error) { return listing.IBStat(s, listing.IBStatOptions{GUIDs: true}) }},
		{"ibstat rxe0", func() ([]byte, error) { return listing.IBStat(s, listing.IBStatOptions{Device: "rxe0"}) }},
		{"ibstat rxe0 1", func() ([]byte, error) { return listing.IBStat(s, listing.IBStatOptions{Device: "rxe0", Port: "1"}) }},
		{"ibstat rxe0 2", func() ([]byte, error) { return listing.IBStat(s, listing.IBStatOptions{Device: "rxe0", Port: "2"}) }},
		{"ibstat nodev", func() ([]byte, error) { return listing.IBStat(s, listing.IBStatOptions{Device: "nodev"}) }},
	}
	for _, line := range rdmaLines {
		all = append(all, listed{"rdma " + line, func() ([]byte, error) { return listing.RDMA(s, strings.Fields(line)) }})
	}
	// Numbers that only this guest has.
	d := s.Device("rxe0")
	qps, mrs := d.QPs.Or(nil), d.MRs.Or(nil)
	for _, state := range []string{"INIT", "RTR", "RTS"} {
		if !slices.ContainsFunc(qps, func(q snapshot.QP) bool { return q.State == state && q.Type == "RC" }) {
			t.Errorf("no queue pair in %s", state)
		}
	}
	if len(qps) == 0 || len(mrs) == 0 {
		t.Fatalf("%d queue pairs, %d memory regions", len(qps), len(mrs))
	}
	lively := []string{
		fmt.Sprintf("res show qp lqpn %d", qps[0].LQPN), fmt.Sprintf("-jp res show qp pid %d", qps[0].PID.Or(0)), fmt.Sprintf("res show cq pid %d", qps[0].PID.Or(0)),
		fmt.Sprintf("res show mr rkey %d", mrs[0].RKey.Or(0)), fmt.Sprintf("res show mr lkey %d", mrs[0].LKey.Or(0)), fmt.Sprintf("-j res show mr pid %d", mrs[0].PID.Or(0)),
		fmt.Sprintf("res show pd pid %d", mrs[0].PID.Or(0)), fmt.Sprintf("res show ctx pid %d", mrs[0].PID.Or(0)), fmt.Sprintf("-d res show cm_id src-addr %s", g.IP4()),
	}
	for _, line := range lively {
		all = append(all, listed{"rdma " + line, func() ([]byte, error) { return listing.RDMA(s, strings.Fields(line)) }})
	}
	var lines []string
	for _, l := range all {
		lines = append(lines, l.line)
	}
	for i, want := range guestLines(ctx, t, g, lines) {
		out, err := all[i].out()
		sameListing(t, all[i].line, want, out, err)
	}

	// The program itself, in the guest, under the traditional names.
	ours := []string{
		"rdma -j res show qp", "rdma -jp res show cm_id", "rdma -d dev", "rdma -p link", "rdma statistic qp mode", "rdma res show qp state RTR", "rdma link show nodev", "rdma foo",
		"ibstat", "ibstat -s", "ibstat -l", "ibstat -p", "ibstat rxe0 1", "ibstat rxe0 2", "ibstat nodev",
		"ibv_devices", "ibv_devinfo", "ibv_devinfo -l", "ibv_devinfo -v", "ibv_devinfo -d rxe0 -i 1", "ibv_devinfo -d rxe0 -i 2", "ibv_devinfo -d nodev",
	}
	if err := guestScript(ctx, t, g, "/tmp/verbena-listing install-tools /tmp/traditional >&2").Err(); err != nil {
		t.Fatal(err)
	}
	var installed []string
	for _, l := range ours {
		if !strings.HasPrefix(l, "rdma") {
			name, rest, _ := strings.Cut(l, " ")
			l = name + " --kernel " + rest // without the devices that could be opened
		}
		installed = append(installed, "/tmp/traditional/"+l)
	}
	got := guestLines(ctx, t, g, installed)
	for i, want := range guestLines(ctx, t, g, ours) {
		if diff := cmp.Diff(want.Stdout, got[i].Stdout); diff != "" || want.Exit != got[i].Exit {
			t.Errorf("%s: exit %d, ours %d: -Debian +ours\n%s", ours[i], want.Exit, got[i].Exit, diff)
		}
	}
}

// rdmaLines are command lines of the rdma tool. Counters stand still: nothing sends.
var rdmaLines = func() []string {
	lines := []string{
		"res show qp state RTS", "res show qp state init,rts", "res show qp type RC", "res show qp type FOO", "res show qp lqpn 1",
		"res show qp lqpn 1-100,5000", "res show qp foo 1", "res show qp lqpn abc", "res show qp lqpn", "res show qp link rxe0",
		"res show qp link rxe0/1", "res show qp link rxe0/-", "res show qp link nodev", "res show cm_id src-port 7174",
		"res show cm_id dst-addr 0.0.0.0", "res show cm_id state LISTEN", "res show cm_id state IDLE", "res show cm_id link rxe0/1",
		"res show cq dev rxe0", "res show cq users 2", "res show cq poll-ctx WORKQUEUE", "res show pd users 1", "res show mr mrlen 4096",
		"foo", "link foo", "link show nodev", "link show rxe0/3", "link show rxe0", "-j link show nodev", "dev show nodev", "res show nodev",
		"-x", "", "help", "st", "s", "l s", "d", "-V", "statistic qp show", "-j statistic qp show", "statistic mode",
		"statistic qp", "statistic qp list", "statistic qp mode", "-j statistic qp mode", "-jp statistic qp mode", "statistic qp mode link rxe0",
		"statistic qp mode link rxe0/1", "statistic qp mode link rxe0/2", "-j statistic qp mode link nodev", "statistic qp mode supported", "statistic qp show link rxe0/1 cntn 3",
		"statistic qp show link nodev", "statistic qp foo", "statistic mode supported", "-j statistic mode supported link rxe0/1", "-jp statistic mode link rxe0",
		"statistic mode foo", "statistic mr", "-j statistic mr", "statistic mr show", "statistic mr show mrn 1", "statistic show link", "statistic show link rxe0",
		"statistic show link rxe0/2", "-j statistic show link rxe0/2", "statistic foo", "statistic list",
		"res show qp state RTR", "-jp res show qp state RTR,RTS type rc", "res show qp rqpn 0", "res show qp sq-psn 0", "res show qp rq-psn 1-16777215",
		"res show qp path-mig-state MIGRATED", "res show qp pdn 1-4", "res show qp state RTS lqpn 1", "res show qp link rxe0/1 state RTR", "res show cm_id state CONNECT",
		"-jp res show cm_id state CONNECT", "res show cm_id dst-port 7174", "res show cm_id src-port 7174 state CONNECT", "res show cm_id ps TCP", "res show cm_id qp-type RC",
		"res show cq cqn 1", "res show mr mrn 1-3", "res show pd pdn 1", "res show ctx ctxn 1", "res show srq srqn 1", "res show srq type BASIC", "res list qp", "-d res show qp state RTR",
		"statistic show rxe0/1", "statistic show link rxe0/1", "--json link", "--details dev", "link show rxe0/1", "dev show rxe0", "res show rxe0",
	}
	for _, o := range []string{"", "-d", "-j", "-jp", "-jd", "-jp -d"} {
		for _, what := range []string{"link", "dev", "res", "system", "statistic", "res show qp", "res show cq", "res show mr", "res show pd", "res show cm_id", "res show ctx", "res show srq"} {
			lines = append(lines, strings.TrimSpace(o+" "+what))
		}
	}
	return lines
}()

// hold starts programs that have objects open and send nothing any more: queue pairs in
// INIT (servers that wait), RTR (a server that is written to) and RTS, a shared receive
// queue, and identifiers of the connection manager that listen and are connected.
func hold(ctx context.Context, t *testing.T, g *guest.Guest) {
	t.Helper()
	ip := g.IP4().String()
	start := func(commands ...string) {
		for _, command := range commands {
			p, err := g.Background(ctx, "exec "+command)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Kill)
		}
	}
	until := func(condition string) {
		if err := g.Until(ctx, condition); err != nil {
			t.Fatal(err)
		}
	}
	start("ibv_rc_pingpong -d rxe0 -g 1 -p 18601", "ibv_ud_pingpong -d rxe0 -g 1 -p 18602", "ibv_srq_pingpong -d rxe0 -g 1 -q 3 -p 18603",
		"ib_write_bw -d rxe0 -x 1 -p 18604 -n 1000000", "rping -s -P -a "+ip+" -p 7174")
	for _, port := range []uint16{18601, 18602, 18603, 18604} {
		if err := g.WaitListening(ctx, port); err != nil {
			t.Fatal(err)
		}
	}
	until("rdma res show cm_id | grep -q LISTEN")
	// The active sides are stopped once they are connected; what they have posted runs
	// out, and then nothing moves.
	client, err := g.Background(ctx, "exec rping -c -v -a "+ip+" -p 7174 -C 1000000000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Kill)
	if err := client.WaitOutput(ctx, "ping data"); err != nil { // the last datagram of the handshake has been sent then
		t.Fatal(err)
	}
	if err := client.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	start("ib_write_bw -d rxe0 -x 1 -p 18604 -n 1000000 " + ip)
	until(`rtr=$(rdma res show qp state RTR | sed -n 's/.* lqpn \([0-9]*\) .*/\1/p') && [ -n "$rtr" ] && kill -STOP $(rdma res show qp rqpn $rtr | sed -n 's/.* pid \([0-9]*\) .*/\1/p')`)
	until("cd /tmp; touch still.0; (rdma statistic; rdma res show qp) > still.1; cmp -s still.0 still.1; r=$?; mv still.1 still.0; exit $r")
}

// guestSnapshot has our program record the guest, and reads the recording here.
func guestSnapshot(ctx context.Context, t *testing.T, g *guest.Guest) *snapshot.Snapshot {
	t.Helper()
	r := guestScript(ctx, t, g, "cd /tmp && rm -rf listed && ./verbena-listing snapshot --interval 0 -o listed >&2 && tar cf listed.tar listed")
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	b, err := g.ReadFile(ctx, "/tmp/listed.tar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := untar(dir, b); err != nil {
		t.Fatal(err)
	}
	rec, err := source.OpenDir(filepath.Join(dir, "listed"))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	w, err := read.Window(rec, read.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return w.After
}

func untar(dir string, b []byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	r := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch name := filepath.Clean(h.Name); h.Typeflag {
		case tar.TypeDir:
			if err := root.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		case tar.TypeReg:
			data, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			if err := root.WriteFile(name, data, 0o644); err != nil {
				return err
			}
		}
	}
}

// sameListing wants the original's output and exit status. Of rdma res show srq iproute2 6.1
// prints the queue pairs where the program's name belongs; we print the name.
func sameListing(t *testing.T, line string, want guest.Result, out []byte, err error) {
	t.Helper()
	status := 0
	var e *listing.Error
	if errors.As(err, &e) {
		status = e.Status
	} else if err != nil {
		t.Errorf("%s: %v", line, err)
	}
	got, theirs := string(out), want.Stdout
	if strings.Contains(line, "srq") {
		got, theirs = withoutComm(got), withoutComm(theirs)
	}
	if diff := cmp.Diff(theirs, got); diff != "" {
		t.Errorf("%s: -Debian +ours\n%s", line, diff)
	}
	if status != want.Exit {
		t.Errorf("%s: exit status %d, ours %d (%v)", line, want.Exit, status, err)
	}
}

func withoutComm(s string) string {
	var b strings.Builder
	for l := range strings.Lines(s) {
		if i := strings.Index(l, "comm"); i >= 0 {
			l = l[:i]
		}
		b.WriteString(l)
	}
	return b.String()
}
