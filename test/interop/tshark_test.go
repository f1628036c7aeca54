//go:build linux

package interop

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/capture"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/pcap"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/verbs"
	"github.com/verbena-rdma/verbena/wire"
)

// tsharkFields are what is asked of every packet; the columns of a row are in this order.
var tsharkFields = []string{
	"bth.opcode", "bth.destqp", "bth.psn", "bth.padcnt", "reth.va", "reth.r_key", "reth.dmalen", "immdt", "ieth",
	"atomiceth.swapdt", "atomiceth.cmpdt", "atomicacketh.origremdt", "deth.q_key", "deth.srcqp", "aeth.syndrome", "aeth.msn",
}

// The columns that tests look at by name.
const (
	colOpcode = iota
	colQPN
	colPSN
	colPad
	colVA
	colRKey
	colDMALen
	colImm
	colInv
	colSwap
	colCompare
	colOrig
	colQKey
	colSrcQPN
	colSyndrome
	colMSN
	numCols
)

// cell is a number, or absent.
type cell struct {
	set bool
	v   uint64
}

func (c cell) String() string {
	if !c.set {
		return "-"
	}
	return fmt.Sprintf("%#x", c.v)
}

type row [numCols]cell

func (r row) String() string {
	var b strings.Builder
	for i, c := range r {
		if c.set {
			fmt.Fprintf(&b, "%s=%v ", tsharkFields[i], c)
		}
	}
	return b.String()
}

// dissect runs tshark over a file and fails the test for everything that it calls malformed.
func dissect(t *testing.T, file string) []row {
	t.Helper()
	// Payloads are ours: they must not be taken for RPC over RDMA, or Ethernet over InfiniBand.
	args := []string{
		"-r", file, "--disable-heuristic", "rpcrdma_infiniband",
		"--disable-heuristic", "mellanox_eoib", "--disable-heuristic", "eth_over_ib", "-Y", "infiniband", "-T", "fields", "-E", "separator=|", "-E", "occurrence=f",
	}
	for _, f := range tsharkFields {
		args = append(args, "-e", "infiniband."+f)
	}
	args = append(args, "-e", "_ws.malformed", "-e", "frame.number")
	out, err := exec.Command("tshark", args...).Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	var rows []row
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if len(f) != numCols+2 {
			t.Fatalf("tshark printed %q: %d columns, want %d", line, len(f), numCols+2)
		}
		if f[numCols] != "" {
			t.Errorf("tshark finds frame %s malformed: %s", f[numCols+1], f[numCols])
		}
		var r row
		for i, text := range f[:numCols] {
			if text == "" {
				continue
			}
			base := 0
			if i == colImm || i == colInv { // bytes
				text, base = strings.ReplaceAll(text, ":", ""), 16
			}
			v, err := strconv.ParseUint(text, base, 64)
			if err != nil {
				t.Fatalf("frame %s: %s is %q", f[numCols+1], tsharkFields[i], text)
			}
			r[i] = cell{true, v}
		}
		rows = append(rows, r)
	}
	return rows
}

// TestTsharkReadsWhatWeMean sends every opcode that there is between two devices of ours, records it with link/pcap
// and compares what tshark reads with what the requests say must have been sent.
func TestTsharkReadsWhatWeMean(t *testing.T) {
	judge.Need(t, "tshark")
	name := filepath.Join(t.TempDir(), "all.pcapng")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	a, b := newLocal(t, "127.0.7.1", func(l link.Link) link.Link {
		p, err := pcap.New(l, file, pcap.Config{Name: "vrb0"})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}), newLocal(t, "127.0.7.2", nil)
	s := &script{t: t, ctx: within(t, patience), rng: rand.New(rand.NewPCG(seed(t), 5))}
	for _, typ := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
		s.join(a, b, typ)
		s.both(a, b, typ)
	}
	refused := map[uint64]bool{}
	for _, n := range []int{1, 5000} {
		s.invalidate(a, b, n)
		refused[uint64(a.qp.Num())] = true
	}
	nak := s.naks(a, b)
	if err := a.dev.Close(); err != nil {
		t.Fatal(err)
	}
	rows := dissect(t, name)
	seen, once := map[wire.Opcode]bool{}, map[row]bool{}
	var got []row
	var last int
	for i, r := range rows {
		op := wire.Opcode(r[colOpcode].v)
		seen[op] = true
		if r[colQPN].v == uint64(nak.a) || r[colQPN].v == uint64(nak.b) {
			last = i
			continue
		}
		if op == wire.RCAck {
			if syn := r[colSyndrome]; !syn.set || syn.v > 31 && !refused[r[colQPN].v] || !r[colMSN].set {
				t.Errorf("an acknowledgement is %v", r)
			}
			continue
		}
		// What an AETH carries besides is the responder's business; that it is there is the opcode's.
		r[colSyndrome], r[colMSN] = cell{}, cell{}
		if once[r] {
			continue // on a busy machine an answer is late, and the request is made again: no PSN comes twice but so
		}
		once[r] = true
		got = append(got, r)
	}
	for i := range max(len(got), len(s.want)) {
		switch {
		case i >= len(got):
			t.Fatalf("packet %d is missing: %v", i, s.want[i])
		case i >= len(s.want):
			t.Fatalf("packet %d is too much: %v", i, got[i])
		case got[i] != s.want[i]:
			t.Fatalf("packet %d: tshark reads\n%v, we meant\n%v", i, got[i], s.want[i])
		}
	}
	wire.Opcodes(func(info *wire.OpInfo) {
		switch info.Op {
		case wire.CNP, wire.RCFlush, wire.RCAtomicWrite:
			return // tshark 4.0 does not know them
		}
		if !seen[info.Op] {
			t.Errorf("no packet of opcode %#02x (%v) was sent", uint8(info.Op), info.Op)
		}
	})
	t.Logf("%d packets, %d opcodes", len(rows), len(seen))
	if last == 0 {
		t.Error("no NAK was recorded")
	}
	naks := map[uint64]bool{}
	for _, r := range rows {
		if r[colQPN].v == uint64(nak.a) || r[colQPN].v == uint64(nak.b) {
			naks[r[colSyndrome].v>>5] = naks[r[colSyndrome].v>>5] || r[colSyndrome].set
		}
	}
	if !naks[1] || !naks[3] {
		t.Errorf("kinds of acknowledgements on the failing queue pairs: %v, want RNR NAK (1) and NAK (3)", naks)
	}
}

// local is a device of ours on the loopback interface.
type local struct {
	dev *verbs.Device
	pd  *verbs.PD
	cq  *verbs.CQ
	mr  *verbs.MR
	buf []byte
	qp  *verbs.QP
	to  *verbs.Peer
	psn ib.PSN // of the next request
}

func newLocal(t *testing.T, addr string, wrap func(link.Link) link.Link) *local {
	t.Helper()
	e := &local{buf: make([]byte, 1<<16)}
	var err error
	if e.dev, err = verbs.Open(verbs.Config{Addr: netip.MustParseAddr(addr), Wrap: wrap}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.dev.Close() })
	e.pd = e.dev.AllocPD()
	if e.cq, err = e.dev.CreateCQ(verbs.CQConfig{Depth: 256}); err != nil {
		t.Fatal(err)
	}
	if e.mr, err = e.pd.RegisterMR(e.buf, ib.AccessAll); err != nil {
		t.Fatal(err)
	}
	return e
}

// script sends messages and notes the packets that they must become.
type script struct {
	t    *testing.T
	ctx  context.Context
	rng  *rand.Rand
	want []row
}

// join connects new queue pairs of the two ends.
func (s *script) join(a, b *local, typ ib.QPType) {
	s.t.Helper()
	x, y := net.Pipe()
	defer x.Close()
	defer y.Close()
	done := make(chan error, 1)
	for _, e := range []*local{a, b} {
		var err error
		if e.qp, err = e.pd.CreateQP(verbs.QPConfig{Type: typ, SendCQ: e.cq, RecvCQ: e.cq}); err != nil {
			s.t.Fatal(err)
		}
	}
	go func() {
		var err error
		b.to, err = verbs.Connect(s.ctx, y, b.qp, b.mr)
		done <- err
	}()
	var err error
	if a.to, err = verbs.Connect(s.ctx, x, a.qp, a.mr); err != nil {
		s.t.Fatal(err)
	}
	if err := <-done; err != nil {
		s.t.Fatal(err)
	}
	a.psn, b.psn = a.to.Path.LocalPSN, b.to.Path.LocalPSN
}

// both sends every message that the service has, both ways.
func (s *script) both(a, b *local, typ ib.QPType) {
	s.t.Helper()
	mtu := a.to.Path.MTU.Bytes()
	for _, way := range [][2]*local{{a, b}, {b, a}} {
		x, y := way[0], way[1]
		for _, n := range []int{0, 1, 2, 3, mtu - 1, mtu, mtu + 1, 3*mtu + 2} {
			if typ == ib.UD && n > mtu {
				continue
			}
			for _, op := range []ib.WROp{ib.Send, ib.SendImm, ib.Write, ib.WriteImm, ib.Read} {
				switch {
				case typ == ib.UD && op != ib.Send && op != ib.SendImm,
					typ == ib.UC && op == ib.Read:
					continue
				}
				s.message(x, y, op, n, mtu)
			}
		}
		if typ == ib.RC {
			s.message(x, y, ib.FetchAdd, 8, mtu)
			s.message(x, y, ib.CompareSwap, 8, mtu)
		}
	}
}

// message sends one message from x to y and notes its packets.
func (s *script) message(x, y *local, op ib.WROp, n, mtu int) {
	s.t.Helper()
	wr := ib.SendWR{
		Op: op, Flags: ib.Signaled, SGL: x.mr.SGE(64, n), Imm: s.rng.Uint32(), Remote: x.to.At(1024),
		Compare: s.rng.Uint64(), SwapAdd: s.rng.Uint64(), UD: x.to.Datagram(),
	}
	waits := 0
	if op.IsSend() || op == ib.WriteImm {
		if err := y.qp.PostRecv(ib.RecvWR{SGL: y.mr.SGE(8192, n+40)}); err != nil {
			s.t.Fatal(err)
		}
		waits++
	}
	before := binary.NativeEndian.Uint64(y.buf[1024:]) // ordered by the completions of earlier messages
	if err := x.qp.PostSend(wr); err != nil {
		s.t.Fatal(err)
	}
	await(s.ctx, s.t, x.cq, fmt.Sprintf("%v of %d bytes", op, n))
	if waits > 0 {
		await(s.ctx, s.t, y.cq, fmt.Sprintf("receive of a %v of %d bytes", op, n))
	}
	s.note(x, y, &wr, n, mtu, before)
}

func await(ctx context.Context, t *testing.T, cq *verbs.CQ, what string) {
	t.Helper()
	var wc [1]ib.WC
	if _, err := cq.Wait(ctx, wc[:]); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if wc[0].Status != ib.Success {
		t.Fatalf("%s: %v", what, wc[0].Status)
	}
}

// note appends the packets of a message. It follows the tables of the specification (IBA vol.1 9.2, 9.3.3), not our
// table of opcodes.
func (s *script) note(x, y *local, wr *ib.SendWR, n, mtu int, before uint64) {
	packets := max(1, (n+mtu-1)/mtu)
	base := uint64(0)
	switch x.qp.Type() {
	case ib.UC:
		base = 0x20
	case ib.UD:
		base = 0x60
	}
	add := func(to *local, psn ib.PSN, op uint64, bytes int, set func(r *row)) {
		var r row
		r[colOpcode], r[colQPN], r[colPSN] = cell{true, base + op}, cell{true, uint64(to.qp.Num())}, cell{true, uint64(psn & ib.PSNMask)}
		r[colPad] = cell{true, uint64(-bytes & 3)}
		if x.qp.Type() == ib.UD {
			r[colQKey], r[colSrcQPN] = cell{true, uint64(wr.UD.QKey)}, cell{true, uint64(x.qp.Num())}
		}
		if set != nil {
			set(&r)
		}
		s.want = append(s.want, r)
	}
	reth := func(r *row) {
		r[colVA], r[colRKey], r[colDMALen] = cell{true, wr.Remote.Addr}, cell{true, uint64(wr.Remote.RKey)}, cell{true, uint64(n)}
	}
	part := func(i int) int { return min(mtu, n-i*mtu) }
	switch wr.Op {
	case ib.Read:
		add(y, x.psn, 0x0C, 0, reth)
		for i := range packets {
			op := uint64(0x0E)
			switch {
			case packets == 1:
				op = 0x10
			case i == 0:
				op = 0x0D
			case i == packets-1:
				op = 0x0F
			}
			add(x, x.psn+ib.PSN(i), op, part(i), nil)
		}
		x.psn += ib.PSN(packets)
		return
	case ib.FetchAdd, ib.CompareSwap:
		op := uint64(0x14)
		if wr.Op == ib.CompareSwap {
			op = 0x13
		}
		add(y, x.psn, op, 0, func(r *row) {
			r[colVA], r[colRKey] = cell{true, wr.Remote.Addr}, cell{true, uint64(wr.Remote.RKey)}
			r[colSwap], r[colCompare] = cell{true, wr.SwapAdd}, cell{true, 0}
			if wr.Op == ib.CompareSwap {
				r[colCompare] = cell{true, wr.Compare}
			}
		})
		add(x, x.psn, 0x12, 0, func(r *row) { r[colOrig] = cell{true, before} })
		x.psn++
		return
	}
	first, middle, last, lastImm, only, onlyImm := uint64(0), uint64(1), uint64(2), uint64(3), uint64(4), uint64(5)
	if wr.Op.IsWrite() {
		first, middle, last, lastImm, only, onlyImm = 6, 7, 8, 9, 10, 11
	}
	if wr.Op == ib.SendInv {
		lastImm, onlyImm = 0x16, 0x17
	}
	for i := range packets {
		op := middle
		end := i == packets-1
		with := end && (wr.Op.HasImm() || wr.Op == ib.SendInv)
		switch {
		case packets == 1 && with:
			op = onlyImm
		case packets == 1:
			op = only
		case i == 0:
			op = first
		case with:
			op = lastImm
		case end:
			op = last
		}
		add(y, x.psn, op, part(i), func(r *row) {
			if wr.Op.IsWrite() && i == 0 {
				reth(r)
			}
			if with && wr.Op == ib.SendInv {
				r[colInv] = cell{true, uint64(wr.Imm)}
			} else if with {
				r[colImm] = cell{true, uint64(wr.Imm)}
			}
		})
		x.psn++
	}
}

// invalidate sends a SEND with invalidate from x to y on a new connection. No key can be invalidated by a peer yet, so
// it is refused; but it has been sent.
func (s *script) invalidate(x, y *local, n int) {
	s.t.Helper()
	s.join(x, y, ib.RC)
	if err := y.qp.PostRecv(ib.RecvWR{SGL: y.mr.SGE(8192, n)}); err != nil {
		s.t.Fatal(err)
	}
	wr := ib.SendWR{Op: ib.SendInv, Flags: ib.Signaled, SGL: x.mr.SGE(64, n), Imm: uint32(y.mr.RKey())}
	if err := x.qp.PostSend(wr); err != nil {
		s.t.Fatal(err)
	}
	var wc [1]ib.WC
	for _, e := range []*local{x, y} {
		if _, err := e.cq.Wait(s.ctx, wc[:]); err != nil {
			s.t.Fatalf("SEND with invalidate: %v", err)
		}
	}
	s.note(x, y, &wr, n, x.to.Path.MTU.Bytes(), 0)
}

// failing are the queue pairs whose packets are not noted.
type failing struct{ a, b ib.QPN }

// naks makes b send an RNR NAK and a NAK.
func (s *script) naks(a, b *local) failing {
	s.t.Helper()
	s.join(a, b, ib.RC)
	if err := a.qp.PostSend(ib.SendWR{Op: ib.Send, Flags: ib.Signaled, SGL: a.mr.SGE(0, 10)}); err != nil {
		s.t.Fatal(err)
	}
	for b.dev.Stats().Get("send_rnr_err") == 0 && s.ctx.Err() == nil {
		a.dev.Progress()
		b.dev.Progress()
	}
	if err := b.qp.PostRecv(ib.RecvWR{SGL: b.mr.SGE(0, 10)}); err != nil {
		s.t.Fatal(err)
	}
	await(s.ctx, s.t, a.cq, "SEND that waited")
	await(s.ctx, s.t, b.cq, "receive that came late")
	bad := a.to.At(0)
	bad.RKey ^= 0x5A
	if err := a.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: a.mr.SGE(0, 10), Remote: bad}); err != nil {
		s.t.Fatal(err)
	}
	var wc [1]ib.WC
	if _, err := a.cq.Wait(s.ctx, wc[:]); err != nil || wc[0].Status != ib.RemAccessErr {
		s.t.Fatalf("WRITE with a wrong key: %v, %v", wc[0].Status, err)
	}
	return failing{a.qp.Num(), b.qp.Num()}
}

// TestCaptureOfLinux records at the guest's interface, with tcpdump, what we and rdma_rxe say to each other, and has it
// read by tshark and by our own decoder: nothing malformed, every ICRC right, every packet there.
func TestCaptureOfLinux(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core", "tcpdump", "tshark")
	for _, fam := range allFamilies {
		t.Run(fam.String(), func(t *testing.T) {
			ctx := within(t, patience)
			h := newHost(t, 2*dataBytes, nil)
			g := h.net.Guest(1)
			name := filepath.Join(t.TempDir(), "linux.pcap")
			rec, err := h.net.Capture(ctx, name, g.Tap(), "udp port 4791")
			if err != nil {
				t.Fatal(err)
			}
			before := h.account()
			for _, typ := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
				// At most four packets are under way: nothing is lost. If it is, the accounts differ.
				c := newPair(ctx, h, typ, fam, settings{mtu: ib.MTU512}, dataBytes)
				d := &mover{pair: c, ctx: ctx, rng: rand.New(rand.NewPCG(seed(t), 6))}
				for _, n := range []int{1, 511, 2000} {
					switch typ {
					case ib.UD:
						d.send(min(n, 512))
						d.sendBack(min(n, 512))
						continue
					case ib.RC:
						d.read(n)
						d.readBack(n)
						d.atomics(2)
						d.atomicsBack(2)
					}
					d.send(n)
					d.sendBack(n)
					d.write(n)
					d.writeBack(n)
				}
			}
			before.settle()
			if err := rec.Stop(); err != nil {
				t.Fatal(err)
			}
			s := h.dev.Stats()
			want := s.Get("sent_pkts") + s.Get("rcvd_pkts")
			if rows := dissect(t, name); uint64(len(rows)) != want {
				t.Errorf("tshark reads %d packets, %d were sent", len(rows), want)
			}
			decode(t, name, want)
			h.clean()
		})
	}
}

// decode reads a recording with our decoder.
func decode(t *testing.T, name string, want uint64) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	totals, err := capture.Decode(f, func(p *capture.Packet) error {
		if p.Bad != "" {
			t.Errorf("frame %d: %s: %s", p.Frame, p.Bad, p.AppendLine(nil))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if uint64(totals.Packets) != want {
		t.Errorf("our decoder reads %d packets, %d were sent", totals.Packets, want)
	}
}
