//go:build linux

package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf"
	"github.com/verbena-rdma/verbena/test/interop/guest"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/verbs"
)

// program is one of ours with the one of Debian's that it talks to.
type program struct {
	name    string
	ours    string // arguments of verbena
	theirs  string
	typ     ib.QPType
	latency bool
	events  bool // knows -e
	pings   bool // a pingpong, not one of perftest
	atomic  bool
}

func programs() []program {
	var out []program
	for _, typ := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
		low := strings.ToLower(typ.String())
		out = append(out, program{name: low + "-pingpong", ours: "pingpong " + low, theirs: "ibv_" + low + "_pingpong", typ: typ, pings: true, events: true, latency: true})
	}
	add := func(verb string, option string, types ...ib.QPType) {
		for _, typ := range types {
			for _, kind := range []string{"bw", "lat"} {
				p := program{
					name: fmt.Sprintf("%s-%s-%v%s", verb, kind, typ, option), typ: typ, latency: kind == "lat",
					ours:   fmt.Sprintf("perf %s-%s -c %v%s", verb, kind, typ, option),
					theirs: fmt.Sprintf("ib_%s_%s -c %v%s", verb, kind, typ, option),
					events: verb != "write", atomic: verb == "atomic",
				}
				p.name = strings.ReplaceAll(p.name, " -A ", "-")
				out = append(out, p)
			}
		}
	}
	add("write", "", ib.RC, ib.UC)
	add("read", "", ib.RC)
	add("send", "", ib.RC, ib.UC, ib.UD)
	add("atomic", " -A FETCH_AND_ADD", ib.RC)
	add("atomic", " -A CMP_AND_SWAP", ib.RC)
	return out
}

// The other factors of the matrix. The first is always the program.
var (
	sides    = []string{"we serve", "we call"}
	sizeOf   = []string{"1", "2", "3", "4", "MTU-1", "MTU", "MTU+1", "64K", "1M", "8"} // the last is for atomics alone
	qpCounts = []int{1, 4}
	variants = []string{"", "-b", "-e", "-l 4", "--use-srq"}
)

const sizeAtomic = 9

func messageSize(name string, mtu ib.MTU) int {
	switch name {
	case "MTU-1":
		return mtu.Bytes() - 1
	case "MTU":
		return mtu.Bytes()
	case "MTU+1":
		return mtu.Bytes() + 1
	case "64K":
		return 64 << 10
	case "1M":
		return 1 << 20
	}
	n, err := strconv.Atoi(name)
	if err != nil {
		panic(err)
	}
	return n
}

// run is one row of the matrix.
type run struct {
	program
	weServe bool
	size    int
	mtu     ib.MTU
	fam     family
	qps     int
	variant string
}

func (r run) String() string {
	s := sides[1]
	if r.weServe {
		s = sides[0]
	}
	return strings.TrimSpace(fmt.Sprintf("%s/%s %d bytes mtu %d %v %d QPs %s", r.name, s, r.size, r.mtu.Bytes(), r.fam, r.qps, r.variant))
}

// matrix returns all valid rows, as runs and as what pairwise wants.
func matrix() (runs map[string]run, rows [][]int) {
	ps := programs()
	make1 := func(row []int) run {
		return run{
			program: ps[row[0]], weServe: row[1] == 0, mtu: allMTUs[row[3]], size: messageSize(sizeOf[row[2]], allMTUs[row[3]]),
			fam: allFamilies[row[4]], qps: qpCounts[row[5]], variant: variants[row[6]],
		}
	}
	rows = product([]int{len(ps), len(sides), len(sizeOf), len(allMTUs), len(allFamilies), len(qpCounts), len(variants)}, func(row []int) bool {
		r := make1(row)
		switch {
		case r.atomic != (row[2] == sizeAtomic):
			return false
		case r.typ == ib.UD && r.size > r.mtu.Bytes():
			return false
		case r.typ == ib.UD && r.pings && r.mtu != ib.MTU1024: // it has no -m
			return false
		case r.latency && r.qps > 1:
			return false
		case r.typ == ib.UC && r.qps > 1 && r.size >= 1<<20: // more than the socket's buffer holds when we are not running
			return false
		case r.variant == "-e" && !r.events, r.variant == "-b" && r.latency, r.variant == "-l 4" && r.latency,
			r.variant == "--use-srq" && !strings.HasPrefix(r.name, "send-"),
			// ib_send_bw posts no more receives than -n for all queue pairs: over UC and UD the rest of a burst is lost, and it
			// waits for it for ever, for its own kind too.
			r.variant == "--use-srq" && r.qps > 1 && r.typ != ib.RC && !r.weServe:
			return false
		}
		return true
	})
	runs = map[string]run{}
	for _, row := range rows {
		runs[fmt.Sprint(row)] = make1(row)
	}
	return runs, rows
}

// TestPrograms runs our programs against Debian's, in both directions. Ours run as separate processes without any
// privilege.
func TestPrograms(t *testing.T) {
	judge.Need(t, "rxe", "perftest", "rdma-core")
	runs, rows := matrix()
	picked := rows
	if !full() {
		picked = pairwise(rows, seed(t))
	}
	t.Logf("%d runs of a matrix of %d, seed %d", len(picked), len(rows), seed(t))
	b := &bench{net: network(t), gids: hostGIDs(t, verbs.Config{})}
	b.program(t)
	// By program, so that what a reader looks for is together.
	slices.SortStableFunc(picked, func(x, y []int) int { return x[0] - y[0] })
	passed := map[string]int{}
	for _, row := range picked {
		r := runs[fmt.Sprint(row)]
		if t.Run(r.String(), func(t *testing.T) { b.run(t, r) }) {
			passed[r.name]++
		}
	}
	for _, p := range programs() {
		t.Logf("%-28s %3d runs passed against %s", p.name, passed[p.name], p.theirs)
	}
	t.Logf("%d runs were repeated because a message was lost; dropped on the way: %v", b.repeats, drops(b.net))
	complaints(t, b.net.Guest(1))
}

// hostGIDs are the rows of our GID table by family.
func hostGIDs(t *testing.T, cfg verbs.Config) map[family]int {
	h := openHost(t, network(t), 1, cfg)
	defer h.dev.Close()
	return map[family]int{ipv4: h.gid(h.net.Guest(1).IP4()), ipv6: h.gid(h.net.Guest(1).IP6())}
}

// bench runs programs against each other.
type bench struct {
	net  *guest.Net
	gids map[family]int
	port atomic.Uint32 // the last TCP port that a handshake has used
	// packet runs ours on an Ethernet device, as root; else as nobody.
	packet bool

	repeats int // of runs in which a message was lost
}

// ourProgram is verbena, built once, where everybody may run it.
var ourProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "verbena-interop-")
	if err != nil {
		return "", err
	}
	shared.dir = dir
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "verbena")
	cmd := exec.Command("go", "build", "-o", path, "github.com/verbena-rdma/verbena/cmd/verbena")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build verbena: %w\n%s", err, out)
	}
	return path, nil
})

func (b *bench) program(t *testing.T) string {
	t.Helper()
	path, err := ourProgram()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// iterations are few: a guest is emulated. perftest wants at least 5, and a multiple of -l.
func (r run) iterations() int {
	if r.size >= 64<<10 {
		return 8
	}
	return 20
}

// options are the command lines behind the names of the programs, without a server's address.
func (r run) options(port int, ourGID, theirGID int) (ours, theirs string) {
	common := fmt.Sprintf(" -s %d -n %d -p %d", r.size, r.iterations(), port)
	if r.variant != "" {
		common += " " + r.variant
	}
	if r.pings {
		common += " -c"
		if r.typ != ib.UD {
			common += fmt.Sprintf(" -m %d", r.mtu.Bytes())
		}
		ours, theirs = fmt.Sprintf("%s%s -g %d", r.ours, common, ourGID), fmt.Sprintf("%s%s -g %d", r.theirs, common, theirGID)
	} else {
		common += fmt.Sprintf(" -m %d -F", r.mtu.Bytes())
		if r.typ == ib.RC {
			common += " -u 20" // 4 s: a guest may stand still for a while
		}
		if r.qps > 1 {
			common += fmt.Sprintf(" -q %d", r.qps)
		}
		ours, theirs = fmt.Sprintf("%s%s -x %d", r.ours, common, ourGID), fmt.Sprintf("%s%s -x %d", r.theirs, common, theirGID)
	}
	return ours + " -d vrb_" + guest.Bridge, theirs + " -d " + guest.RxeDevice
}

// run makes a run. Over UC and UD a message may rightly be lost, and a program that waits for it then ends or hangs: such
// a run is made again. The verdict is of a run in which nothing was lost, and there must be one.
func (b *bench) run(t *testing.T, r run) {
	for try := 1; ; try++ {
		before := drops(b.net)
		why := b.once(t, r)
		if why == nil {
			return
		}
		lost := drops(b.net).since(before)
		if r.typ == ib.RC || t.Failed() || try == tries {
			t.Fatalf("try %d of %d: %v\ndropped meanwhile: %v", try, tries, why, lost)
		}
		t.Logf("try %d of %d: %v\ndropped meanwhile: %v", try, tries, why, lost)
		b.repeats++
	}
}

// once runs the two programs. Its error says that a message did not come: one waits for ever, or ours tells so. What they
// must never do fails the test.
func (b *bench) once(t *testing.T, r run) error {
	t.Helper()
	ctx := within(t, patience)
	if r.typ != ib.RC {
		ctx = within(t, silence) // the programs of Debian wait for ever
	}
	g := b.net.Guest(1)
	port := int(20000 + b.port.Add(1)%20000)
	ours, theirs := r.options(port, b.gids[r.fam], guestGID(t, r.fam))
	var out string
	var result guest.Result
	var err, ourErr error
	if r.weServe {
		p := b.start(ctx, t, ours)
		p.waitListening(ctx, t, port)
		result, err = g.Run(ctx, theirs+" "+guest.HostIP4.String())
		if err == nil {
			err = result.Err()
		}
		if err != nil {
			p.kill() // it may wait for theirs
		}
		out, ourErr = p.result()
	} else {
		s, serr := g.Background(ctx, theirs)
		if serr != nil {
			t.Fatal(serr)
		}
		defer s.Kill()
		if err := g.WaitListening(ctx, uint16(port)); err != nil {
			o, e := s.Output()
			t.Fatalf("%v\n%s%s", err, o, e)
		}
		p := b.start(ctx, t, ours+" "+g.IP4().String())
		if out, ourErr = p.result(); ourErr != nil {
			s.Kill()
		}
		result, err = s.Wait(ctx)
		if err == nil {
			err = result.Err()
		}
	}
	if err != nil || ourErr != nil {
		why := fmt.Errorf("%w\ntheirs, %q:\n%s%s\nours, %q:\n%s", errors.Join(err, ourErr), theirs, result.Stdout, result.Stderr, ours, out)
		wrong := strings.Contains(out+result.Stdout, "invalid data")
		if wrong || ctx.Err() == nil && !strings.Contains(out, "was lost") {
			t.Fatal(why)
		}
		return why
	}
	r.check(t, "ours", ours, out, r.weServe)
	r.check(t, "theirs", theirs, result.Stdout, !r.weServe)
	return nil
}

const (
	tries   = 4           // of a run over a service that may lose messages
	silence = time.Minute // how long one of them may take
)

// check reads what a program printed.
func (r run) check(t *testing.T, whose, command, out string, server bool) {
	t.Helper()
	if r.pings {
		if !strings.Contains(out, fmt.Sprintf("%d iters in ", r.iterations())) || strings.Contains(out, "invalid data") {
			t.Errorf("%s: %q printed no result:\n%s", whose, command, out)
		}
		return
	}
	// The servers of one-sided latency programs print no table.
	if server && (strings.Contains(r.theirs, "read_lat") || strings.Contains(r.theirs, "atomic_lat")) {
		return
	}
	iters := r.iterations() * r.qps
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) >= 5 && f[0] == strconv.Itoa(r.size) && f[1] == strconv.Itoa(iters) {
			if v, err := strconv.ParseFloat(f[3], 64); err == nil && v >= 0 {
				return
			}
		}
	}
	t.Errorf("%s: %q printed no line for %d bytes and %d iterations:\n%s", whose, command, r.size, iters, out)
}

// process is one of our programs.
type process struct {
	cmd  *exec.Cmd
	args string
	out  bytes.Buffer
	done chan struct{}
	err  error
}

// start starts verbena with args on the host side, as nobody and without capabilities unless they are needed.
func (b *bench) start(ctx context.Context, t *testing.T, args string) *process {
	t.Helper()
	command := b.net.CommandAsNobody
	if b.packet {
		command, args = b.net.Command, strings.Replace(args, " -d ", " -d "+perf.EthernetPrefix, 1)
	}
	p := &process{cmd: command(ctx, b.program(t), strings.Fields(args)...), args: args, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.Dir = "/"
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() { p.kill() })
	return p
}

// result waits for the program and returns what it printed, and why it did not exit with 0.
func (p *process) result() (string, error) {
	<-p.done // the context kills it
	return p.out.String(), p.err
}

// wait returns what the program printed; it fails the test unless the program exits with 0.
func (p *process) wait(t *testing.T) string {
	t.Helper()
	<-p.done // the context kills it
	if p.err != nil {
		t.Fatalf("ours: %q: %v\n%s", p.args, p.err, p.out.String())
	}
	return p.out.String()
}

// kill ends the program and returns what it printed.
func (p *process) kill() string {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
	return p.out.String()
}

// waitListening returns when the program listens on the TCP port.
func (p *process) waitListening(ctx context.Context, t *testing.T, port int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, file := range []string{"tcp", "tcp6"} {
			// The process is inside the namespace: its own view is asked for.
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", p.cmd.Process.Pid, file))
			if err == nil && listens(string(text), port) {
				return
			}
		}
		select {
		case <-tick.C:
		case <-p.done:
			t.Fatalf("ours: %q ended before it listened: %v\n%s", p.args, p.err, p.out.String())
		case <-ctx.Done():
			t.Fatalf("ours: %q does not listen on port %d: %v\n%s", p.args, port, context.Cause(ctx), p.kill())
		}
	}
}

// listens looks into a table of /proc/net/tcp: state 0A is LISTEN.
func listens(table string, port int) bool {
	suffix := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[1], suffix) && f[3] == "0A" {
			return true
		}
	}
	return false
}
