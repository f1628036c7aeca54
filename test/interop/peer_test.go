//go:build linux

package interop

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/test/interop/guest"
	"github.com/verbena-rdma/verbena/verbs"
)

const peerPort = 18600

// peerPrograms are the programs of peer/peer.c, compiled and started in each network's guest once.
var peerPrograms struct {
	sync.Mutex
	started map[*guest.Net]error
}

func needPeer(n *guest.Net) error {
	peerPrograms.Lock()
	defer peerPrograms.Unlock()
	err, known := peerPrograms.started[n]
	if !known {
		err = startPeer(n.Guest(1))
		if peerPrograms.started == nil {
			peerPrograms.started = map[*guest.Net]error{}
		}
		peerPrograms.started[n] = err
	}
	return err
}

func startPeer(g *guest.Guest) error {
	dir, err := os.MkdirTemp("", "verbena-peer-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "peer")
	if out, err := exec.Command("cc", "-O1", "-Wall", "-o", bin, "peer/peer.c", "-libverbs").CombinedOutput(); err != nil {
		return fmt.Errorf("compile peer/peer.c: %w\n%s", err, out)
	}
	data, err := os.ReadFile(bin)
	if err != nil {
		return err
	}
	// As long as the network: the commands of a guest end when their connections do.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := g.WriteFile(ctx, "/tmp/verbena-peer", data, 0o755); err != nil {
		return err
	}
	if _, err := g.Background(ctx, fmt.Sprintf("exec /tmp/verbena-peer %d", peerPort)); err != nil {
		return err
	}
	return g.WaitListening(ctx, peerPort)
}

// peer is a queue pair of the guest's rdma_rxe, with memory, by remote control. Its methods end the test where the
// guest cannot do what they ask; what rdma_rxe makes of a request is in the completions.
type peer struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader

	qpn  ib.QPN
	psn  ib.PSN
	rkey ib.RKey
	addr uint64
	gid  ib.GID

	unreliable bool // a message that does not come ends the try and not the test, see lost
	closeOurs  func() error
}

// abandon ends a try in which a message was lost: the guest's process, and our queue pair.
func (p *peer) abandon() {
	p.conn.Close()
	if err := p.closeOurs(); err != nil {
		p.t.Error(err)
	}
}

// lossPatience is how long a message over UC or UD may take before it counts as lost.
const lossPatience = 25 * time.Second

// newPeer makes a queue pair and n bytes of memory in the guest.
func newPeer(ctx context.Context, h *host, typ ib.QPType, fam family, n int) *peer {
	h.t.Helper()
	g := h.net.Guest(1)
	if err := needPeer(h.net); err != nil {
		h.t.Fatal(err)
	}
	p := &peer{t: h.t, conn: h.dial(ctx, netip.AddrPortFrom(g.IP4(), peerPort))}
	p.r = bufio.NewReaderSize(p.conn, 1<<16)
	var gid string
	read := guestGIDs
	if h.net != shared.net {
		read = func() (map[family]int, error) { return readGIDs(g) }
	}
	rows, err := read()
	if err != nil {
		h.t.Fatal(err)
	}
	p.ask([]any{&p.qpn, &p.psn, &p.rkey, &p.addr, &gid}, "open %s %d %d 512", strings.ToLower(typ.String()), n, rows[fam])
	b, err := hex.DecodeString(gid)
	if err != nil || len(b) != len(p.gid) {
		h.t.Fatalf("peer: GID %q", gid)
	}
	p.gid = ib.GID(b)
	return p
}

// ask sends a command and reads the words of the answer into results.
func (p *peer) ask(results []any, format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.conn, format+"\n", args...); err != nil {
		p.t.Fatalf("peer: %v", err)
	}
	p.answer(fmt.Sprintf(format, args...), results)
}

func (p *peer) answer(command string, results []any) {
	p.t.Helper()
	line, err := p.r.ReadString('\n')
	if err != nil {
		p.t.Fatalf("peer: %s: %v", command, err)
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "ok")
	if !ok {
		p.t.Fatalf("peer: %s: %s", command, line)
	}
	if n, err := fmt.Sscan(rest, results...); err != nil && len(results) > 0 {
		p.t.Fatalf("peer: %s: %q has %d words, want %d: %v", command, line, n, len(results), err)
	}
}

// settings are what both ends of a connection use. The zero value takes what suits a slow guest.
type settings struct {
	mtu      ib.MTU // 0: 1024
	timeout  uint8  // of both; 0: 18, a second
	retry    uint8  // 0: 7
	rnrRetry uint8  // 0: 7, for ever
	minRNR   uint8  // 0: 12
	rdAtomic uint8  // 0: 16
}

func (s settings) filled() settings {
	def := func(v *uint8, n uint8) {
		if *v == 0 {
			*v = n
		}
	}
	def(&s.timeout, 18)
	def(&s.retry, 7)
	def(&s.rnrRetry, 7)
	def(&s.minRNR, 12)
	def(&s.rdAtomic, 16)
	if s.mtu == 0 {
		s.mtu = ib.MTU1024
	}
	return s
}

// pair is a queue pair of ours connected to one of the guest's.
type pair struct {
	h    *host
	q    *verbs.QP
	p    *peer
	path verbs.Path
	ud   ib.Datagram // to the guest, on UD
}

// newPair connects a new queue pair with a new one of the guest, which gets n bytes of memory.
func newPair(ctx context.Context, h *host, typ ib.QPType, fam family, s settings, n int) *pair {
	h.t.Helper()
	s = s.filled()
	c := &pair{h: h, q: h.qp(typ), p: newPeer(ctx, h, typ, fam, n)}
	row := h.gid(fam.guest(h.net.Guest(1)))
	psn := randomPSN()
	c.path = verbs.Path{
		DestQPN: c.p.qpn, PSN: c.p.psn, LocalPSN: psn, GID: c.p.gid, GIDIndex: row, MTU: s.mtu,
		TimeoutExp: s.timeout, RetryCnt: s.retry, RNRRetry: s.rnrRetry, MinRNRTimer: s.minRNR,
		MaxRdAtomic: s.rdAtomic, MaxDestRdAtomic: s.rdAtomic,
	}
	if err := h.connect(c.q, c.path); err != nil {
		h.t.Fatal(err)
	}
	c.ud = h.datagram(c.q, c.path)
	gid := h.dev.GIDs()[row].GID
	c.p.ask(nil, "connect %d %d %x %d %d %d %d %d %d", c.q.Num(), psn, gid[:], s.mtu, s.timeout, s.retry, s.rnrRetry, s.minRNR, s.rdAtomic)
	return c
}

// at is a place in the guest's memory.
func (p *peer) at(off int) ib.Remote { return ib.Remote{Addr: p.addr + uint64(off), RKey: p.rkey} }

// fill sets bytes of the guest's memory, over TCP.
func (p *peer) fill(off int, b []byte) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.conn, "fill %d %d\n%s", off, len(b), b); err != nil {
		p.t.Fatalf("peer: %v", err)
	}
	p.answer("fill", nil)
}

// dump returns bytes of the guest's memory, over TCP.
func (p *peer) dump(off, n int) []byte {
	p.t.Helper()
	p.ask(nil, "dump %d %d", off, n)
	b := make([]byte, n)
	if _, err := io.ReadFull(p.r, b); err != nil {
		p.t.Fatalf("peer: dump: %v", err)
	}
	return b
}

// recv posts equal receives in the guest.
func (p *peer) recv(off, n, count int) {
	p.t.Helper()
	p.ask(nil, "recv 7 %d %d %d", off, n, count)
}

// request is what a peer posts.
type request struct {
	op         ib.WROp
	flags      ib.SendFlags // Signaled is added
	off, n     int          // in the guest's memory
	to         ib.Remote
	imm        uint32
	compare    uint64
	swapAdd    uint64
	count      int // equal requests; 0 means 1
	unsignaled bool
	placement  ib.FlushPlacement // raw FLUSH
	level      ib.FlushLevel
}

// send posts requests in the guest.
func (p *peer) send(r request) {
	p.t.Helper()
	flags := r.flags
	if !r.unsignaled {
		flags |= ib.Signaled
	}
	p.ask(nil, "send 9 %d %d %d %d %d %d %d %d %d %d %d", r.op, r.off, r.n, r.to.Addr, r.to.RKey, r.imm, r.compare, r.swapAdd, flags, pingpongQKey, max(r.count, 1))
}

// raw posts one request that the guest's library does not know, or not in full.
func (p *peer) raw(r request) {
	p.t.Helper()
	p.ask(nil, "raw 9 %d %d %d %d %d %d %d %d", r.op, r.off, r.n, r.to.Addr, r.to.RKey, r.flags|ib.Signaled, r.placement, r.level)
}

// window binds a window of type 2 to n bytes of the guest's memory and returns its key.
func (p *peer) window(off, n int) (key ib.RKey) {
	p.t.Helper()
	p.ask([]any{(*uint32)(&key)}, "window %d %d", off, n)
	p.good(1)
	return key
}

// completion is one of the guest's.
type completion struct {
	id     uint64
	status ib.WCStatus
	op     ib.WCOp
	n      int
	imm    uint32
	flags  ib.WCFlags
}

// poll returns n completions of the guest; it ends the test if they do not come.
func (p *peer) poll(n int) []completion {
	p.t.Helper()
	limit := patience / 2
	if p.unreliable {
		limit = lossPatience
	}
	wcs := p.pollUpTo(n, int(limit.Milliseconds()))
	if len(wcs) < n && p.unreliable {
		panic(lost{fmt.Sprintf("the guest has %d completions of %d", len(wcs), n), p.abandon})
	}
	if len(wcs) < n {
		p.t.Fatalf("the guest has %d completions, want %d: %+v", len(wcs), n, wcs)
	}
	return wcs
}

// pollUpTo returns up to n completions, as many as come within some milliseconds.
func (p *peer) pollUpTo(n, ms int) []completion {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.conn, "poll %d %d\n", n, ms); err != nil {
		p.t.Fatalf("peer: %v", err)
	}
	var wcs []completion
	for {
		word, err := p.r.Peek(3)
		if err != nil {
			p.t.Fatalf("peer: poll: %v", err)
		}
		if string(word) != "wc " {
			p.answer("poll", nil)
			return wcs
		}
		line, err := p.r.ReadString('\n')
		if err != nil {
			p.t.Fatalf("peer: poll: %v", err)
		}
		var c completion
		if _, err := fmt.Sscanf(line, "wc %d %d %d %d %d %d", &c.id, &c.status, &c.op, &c.n, &c.imm, &c.flags); err != nil {
			p.t.Fatalf("peer: completion %q: %v", line, err)
		}
		wcs = append(wcs, c)
	}
}

// good returns n completions of the guest and fails the test if one is not successful.
func (p *peer) good(n int) []completion {
	p.t.Helper()
	wcs := p.poll(n)
	for i, c := range wcs {
		if c.status != ib.Success {
			p.t.Errorf("completion %d of the guest: %v of request %d: %v", i, c.op, c.id, c.status)
		}
	}
	return wcs
}

// state is the state of the guest's queue pair.
func (p *peer) state() ib.QPState {
	p.t.Helper()
	var s ib.QPState
	p.ask([]any{(*uint8)(&s)}, "state")
	return s
}
