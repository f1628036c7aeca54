//go:build linux

package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/test/interop/guest"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/verbs"
)

var (
	allMTUs     = []ib.MTU{ib.MTU256, ib.MTU512, ib.MTU1024, ib.MTU2048, ib.MTU4096}
	allFamilies = []family{ipv4, ipv6}
)

// sizes are the message lengths that matter at a path MTU: the four residues, the neighbours of one to three packets,
// and long ones.
func sizes(m ib.MTU) []int {
	n := m.Bytes()
	return []int{0, 1, 2, 3, 4, n - 1, n, n + 1, 2*n - 1, 2 * n, 2*n + 3, 3*n + 2, 64 << 10, 1<<20 + 1}
}

const (
	dataBytes = 2 << 20 // of the guest's memory, and of each half of ours
	guard     = 64      // bytes around a transfer that must not change
)

// TestData moves random bytes both ways by every operation and compares all of them, and their neighbours.
func TestData(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	for _, typ := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
		for i, mtu := range allMTUs {
			for j, fam := range allFamilies {
				if !full() && (i+j)%2 == 1 && mtu != ib.MTU1024 {
					continue
				}
				t.Run(fmt.Sprintf("%v/%d/%v", typ, mtu.Bytes(), fam), func(t *testing.T) { testData(t, typ, mtu, fam, verbs.Config{}) })
			}
		}
	}
}

func testData(t *testing.T, typ ib.QPType, mtu ib.MTU, fam family, cfg verbs.Config) {
	ctx := within(t, patience)
	h := openHost(t, network(t), 2*dataBytes, cfg)
	h.unlessLost(typ, func() {
		before := h.account()
		c := h.pairThatMayLose(ctx, typ, fam, settings{mtu: mtu})
		moveAll(&mover{pair: c, ctx: ctx, rng: rand.New(rand.NewPCG(seed(t), uint64(typ)<<8|uint64(mtu)))}, mtu)
		before.settle()
	})
	h.clean()
}

// unlessLost makes an exchange, over UC and UD again until a try has lost nothing.
func (h *host) unlessLost(typ ib.QPType, exchange func()) {
	h.t.Helper()
	for n := 1; ; n++ {
		what := h.try(exchange)
		switch {
		case what == "":
			return
		case n == dataTries:
			h.t.Fatalf("each of %d tries lost a message, the last one: %s; dropped: %v", n, what, drops(h.net))
		}
		h.t.Logf("try %d: lost, and %v does not repeat it: %s; dropped: %v", n, typ, what, drops(h.net))
	}
}

// try makes an exchange and says what was lost in it. What may still come then belongs to nobody.
func (h *host) try(exchange func()) (what string) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		l, ok := r.(lost)
		if !ok {
			panic(r)
		}
		what = l.what
		l.end()
		for wcs := make([]ib.WC, 16); h.cq.Poll(wcs) > 0; {
		}
	}()
	exchange()
	return ""
}

// pairThatMayLose is newPair for exchanges in unlessLost.
func (h *host) pairThatMayLose(ctx context.Context, typ ib.QPType, fam family, s settings) *pair {
	h.t.Helper()
	c := newPair(ctx, h, typ, fam, s, dataBytes)
	c.p.unreliable = typ != ib.RC
	c.p.closeOurs = c.q.Close
	return c
}

// dataTries is how often an exchange over UC or UD is made, which may lose messages.
// That is no verdict; other bytes than were sent are, in any try.
const dataTries = 4

// lost is the panic that ends a try in which a message did not come.
type lost struct {
	what string
	end  func() // takes away what the try has made
}

// moveAll moves messages of all sizes by all operations.
func moveAll(d *mover, mtu ib.MTU) {
	t := d.h.t
	for _, n := range sizes(mtu) {
		if d.q.Type() == ib.UD {
			if n <= d.h.dev.Port().ActiveMTU.Bytes() {
				d.send(n)
				d.sendBack(n)
			}
			continue
		}
		d.send(n)
		d.sendBack(n)
		d.write(n)
		d.writeBack(n)
		if d.q.Type() == ib.RC {
			d.read(n)
			d.readBack(n)
		}
		if t.Failed() {
			t.Fatalf("at %d bytes", n)
		}
	}
}

// mover moves bytes over a pair. The first half of our memory is the source of what leaves, the second half the sink.
type mover struct {
	*pair
	ctx context.Context
	rng *rand.Rand
}

// draw returns n random bytes.
func (d *mover) draw(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(d.rng.Uint32())
	}
	return b
}

// place returns an offset for n bytes that leaves room for the guards.
func (d *mover) place(n int) int { return guard + d.rng.IntN(dataBytes-n-2*guard) }

// source puts random bytes into our memory.
func (d *mover) source(n int) (off int, b []byte) {
	off, b = d.place(n), d.draw(n)
	copy(d.h.buf[off:], b)
	return off, b
}

// sink fills a place of our memory with a pattern, and its guards.
func (d *mover) sink(n int) (off int) {
	off = dataBytes + d.place(n)
	for i := off - guard; i < off+n+guard; i++ {
		d.h.buf[i] = 0xA5
	}
	return off
}

// sinkThere does the same in the guest.
func (d *mover) sinkThere(n int) (off int) {
	off = d.place(n)
	d.p.fill(off-guard, bytes.Repeat([]byte{0xA5}, n+2*guard))
	return off
}

// same fails the test if got, with its guards, is not want.
func (d *mover) same(what string, got, want []byte) {
	d.h.t.Helper()
	g := bytes.Repeat([]byte{0xA5}, guard)
	all := slices.Concat(g, want, g)
	if bytes.Equal(got, all) {
		return
	}
	for i := range all {
		if got[i] != all[i] {
			d.h.t.Errorf("%s of %d bytes: byte %d is %#02x, want %#02x (of %d to %d)", what, len(want), i-guard, got[i], all[i], 0, len(want))
			return
		}
	}
}

func (d *mover) here(off, n int) []byte { return d.h.buf[off-guard : off+n+guard] }

func (d *mover) there(off, n int) []byte { return d.p.dump(off-guard, n+2*guard) }

// post posts a request and waits for its completion.
func (d *mover) post(wr ib.SendWR) {
	d.h.t.Helper()
	wr.Flags |= ib.Signaled
	wr.UD = d.ud
	if err := d.q.PostSend(wr); err != nil {
		d.h.t.Fatal(err)
	}
	d.completed(fmt.Sprintf("%v of %d bytes", wr.Op, length(wr.SGL)))
}

func length(sgl []ib.SGE) (n int) {
	for _, s := range sgl {
		n += int(s.Length)
	}
	return n
}

// completed waits for one successful completion.
func (d *mover) completed(what string) ib.WC {
	d.h.t.Helper()
	ctx := d.ctx
	if d.p.unreliable {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lossPatience)
		defer cancel()
	}
	wcs, err := d.h.await(ctx, 1)
	if d.p.unreliable && errors.Is(err, context.DeadlineExceeded) {
		panic(lost{what, d.p.abandon})
	}
	if err != nil {
		d.h.clean()
		d.h.t.Fatalf("%s: %v", what, err)
	}
	return wcs[0]
}

func (d *mover) write(n int) {
	d.h.t.Helper()
	off, want := d.source(n)
	to := d.sinkThere(n)
	d.post(ib.SendWR{Op: ib.Write, SGL: d.split(off, n), Remote: d.p.at(to)})
	if d.q.Type() == ib.UC { // complete here says nothing about there: a SEND behind it does
		d.p.recv(0, 0, 1)
		d.post(ib.SendWR{Op: ib.Send})
		d.p.good(1)
	}
	d.same("WRITE", d.there(to, n), want)
}

func (d *mover) read(n int) {
	d.h.t.Helper()
	want := d.draw(n)
	from := d.place(n)
	d.p.fill(from, want)
	to := d.sink(n)
	d.post(ib.SendWR{Op: ib.Read, SGL: d.split(to, n), Remote: d.p.at(from)})
	d.same("READ", d.here(to, n), want)
}

// grh is the length of what UD puts before a message.
func (d *mover) grh() int {
	if d.q.Type() == ib.UD {
		return 40
	}
	return 0
}

func (d *mover) send(n int) {
	d.h.t.Helper()
	off, want := d.source(n)
	to := d.sinkThere(n + d.grh())
	d.p.recv(to, n+d.grh(), 1)
	d.post(ib.SendWR{Op: ib.Send, SGL: d.split(off, n), Flags: ib.Solicited})
	if wc := d.p.good(1)[0]; wc.n != n+d.grh() {
		d.h.t.Errorf("SEND of %d bytes: the guest received %d", n, wc.n)
	}
	got := d.there(to, n+d.grh())
	d.same("SEND", slices.Delete(got, guard, guard+d.grh()), want)
}

func (d *mover) sendBack(n int) {
	d.h.t.Helper()
	want := d.draw(n)
	from := d.place(n)
	d.p.fill(from, want)
	to := d.sink(n + d.grh())
	if err := d.q.PostRecv(ib.RecvWR{SGL: d.split(to, n+d.grh())}); err != nil {
		d.h.t.Fatal(err)
	}
	d.p.send(request{op: ib.Send, off: from, n: n})
	if wc := d.completed("SEND from the guest"); int(wc.Bytes) != n+d.grh() || wc.Op != ib.WCRecv {
		d.h.t.Errorf("SEND of %d bytes from the guest: %v of %d bytes", n, wc.Op, wc.Bytes)
	}
	d.p.good(1)
	d.same("SEND from the guest", slices.Delete(slices.Clone(d.here(to, n+d.grh())), guard, guard+d.grh()), want)
}

func (d *mover) writeBack(n int) {
	d.h.t.Helper()
	want := d.draw(n)
	from := d.place(n)
	d.p.fill(from, want)
	to := d.sink(n)
	d.p.send(request{op: ib.Write, off: from, n: n, to: d.h.mr.Remote(to)})
	d.p.good(1)
	// One message behind it orders our memory for this goroutine, and on UC says that it has come.
	if err := d.q.PostRecv(ib.RecvWR{}); err != nil {
		d.h.t.Fatal(err)
	}
	d.p.send(request{op: ib.Send})
	d.completed("SEND behind a WRITE from the guest")
	d.p.good(1)
	d.same("WRITE from the guest", d.here(to, n), want)
}

func (d *mover) readBack(n int) {
	d.h.t.Helper()
	off, want := d.source(n)
	to := d.sinkThere(n)
	d.p.send(request{op: ib.Read, off: to, n: n, to: d.h.mr.Remote(off)})
	d.p.good(1)
	d.same("READ by the guest", d.there(to, n), want)
}

// split is a list of up to four elements of unequal lengths over n bytes.
func (d *mover) split(off, n int) []ib.SGE {
	var sgl []ib.SGE
	for len(sgl) < 3 && n > 1 && d.rng.IntN(2) == 0 {
		k := 1 + d.rng.IntN(n-1)
		sgl = append(sgl, d.h.mr.SGE(off, k)...)
		off, n = off+k, n-k
	}
	return append(sgl, d.h.mr.SGE(off, n)...)
}

// complaints fails the test for each fault that the guest has logged since its boot.
func complaints(t *testing.T, g *guest.Guest) {
	t.Helper()
	log, err := g.KernelLog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range guest.KernelAlarms(log) {
		t.Errorf("the guest's kernel: %s", line)
	}
}
