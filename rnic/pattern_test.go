package rnic

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
)

// simWire carries runs between the two adapters of a pair in simulated
// time: a packet leaves each end every microsecond and arrives 20 later.
type simWire struct {
	*pair
	now  clock.Time
	run  frame.Run
	air  [2][]airborne
	free [2]clock.Time
	lose func(from int) bool
	left [2]int // packets that left each end
}

type airborne struct {
	at clock.Time
	rx frame.Rx
}

func (w *simWire) ends() [2]*Adapter { return [2]*Adapter{w.a.Adapter, w.b.Adapter} }

// launch lets end i send one run, if the link is free.
func (w *simWire) launch(i int) bool {
	a := w.ends()[i]
	a.Advance(w.now)
	if w.free[i] > w.now {
		return false
	}
	w.run.Reset()
	if !a.Egress(w.now, &w.run) {
		return false
	}
	r := &w.run
	w.free[i] = w.now.Add(time.Duration(r.Segs) * time.Microsecond)
	for k := range r.Segs {
		seg := append([]byte(nil), r.Buf[k*r.Seg:min((k+1)*r.Seg, r.N)]...)
		w.left[i]++
		if w.lose(i) {
			continue
		}
		rx := frame.Rx{Src: r.Src, Dst: r.Dst, SrcPort: r.SrcPort, TOS: r.TOS, TTL: r.TTL, Data: seg}
		w.air[i] = append(w.air[i], airborne{w.free[i].Add(20 * time.Microsecond), rx})
	}
	return true
}

func (w *simWire) land(i int) {
	n := 0
	for n < len(w.air[i]) && w.air[i][n].at <= w.now {
		w.ends()[1-i].Ingress(w.now, &w.air[i][n].rx)
		n++
	}
	w.air[i] = w.air[i][n:]
}

// step does what is due now and moves on to the next instant; false if there is
// none.
func (w *simWire) step() bool {
	for i := range 2 {
		w.land(i)
	}
	moved := false
	for i := range 2 {
		moved = w.launch(i) || moved
	}
	if moved {
		return true
	}
	next := clock.Never
	for i, a := range w.ends() {
		next = clock.Min(next, a.Deadline())
		if w.free[i] > w.now {
			next = clock.Min(next, w.free[i])
		}
		if len(w.air[i]) > 0 {
			next = clock.Min(next, w.air[i][0].at)
		}
	}
	if next == clock.Never {
		return false
	}
	w.now = max(w.now, next)
	return true
}

// pattern says which packets are lost, counted in one direction.
type pattern struct {
	name string
	most int // the largest n that the retry count survives, one packet under way
	lost func(k, n int) bool
}

var patterns = []pattern{
	{"every", 8, func(k, n int) bool { return k%n == 0 }},
	{"burst", 7, func(k, n int) bool { return k > 4*n && k%(4*n) < n }},
}

// Loss by rule does not wedge a connection as long as some packets pass, whatever
// the rhythm: of acknowledgements, of data, of READ requests and responses. Where
// only acknowledgements are lost, hardly anything is sent again and the window
// comes back after an outage; where data is lost, what is sent again and the time
// are bounded.
func TestLossByRule(t *testing.T) {
	for _, mtu := range []ib.MTU{ib.MTU4096, ib.MTU1024, ib.MTU256} {
		for _, op := range []ib.WROp{ib.Write, ib.Send, ib.Read} {
			for _, pat := range patterns {
				for from, what := range []string{"towards", "back"} {
					t.Run(fmt.Sprintf("mtu=%v/%v/%s/%s", mtu, op, pat.name, what), func(t *testing.T) {
						for n := 2; n <= pat.most; n++ {
							lossByRule(t, mtu, op, from, n, pat.lost)
						}
					})
				}
			}
		}
	}
}

const (
	ruleMessages = 16
	ruleSize     = 32<<10 + 9
)

func lossByRule(t *testing.T, mtu ib.MTU, op ib.WROp, from, n int, lost func(k, n int) bool) {
	p := newPair(t, ib.RC, asRuns, mtu, ruleMessages*ruleSize, func(c *Config) { c.Wire.RxBytes = 200 << 10 })
	acks := op != ib.Read && from == 1
	timeouts := func() int { return int(p.a.Stats().Get("local_ack_timeout_err")) }
	k, widest := 0, 0
	w := &simWire{pair: p, run: frame.Run{Buf: make([]byte, 1<<16)}}
	w.lose = func(end int) bool {
		if end != from {
			return false
		}
		if acks {
			// First an outage, so that the window is at its least when the rule begins.
			if timeouts() == 0 {
				return true
			}
			widest = max(widest, p.a.dests[addrB].window.Limit())
		}
		k++
		return lost(k, n)
	}
	source, target := p.bufA, p.bufB
	if op == ib.Read {
		source, target = p.bufB, p.bufA
	}
	for i := range source {
		source[i] = byte(i*7) + byte(i>>8)*3
	}
	for i := range ruleMessages {
		off := i * ruleSize
		wr := ib.SendWR{ID: uint64(i), Op: op, Flags: ib.Signaled, SGL: p.sgl(off, ruleSize)}
		if op == ib.Send {
			p.recvAt(uint64(i), off, ruleSize)
		} else {
			wr.Remote = ib.Remote{Addr: p.remote.Addr + uint64(off), RKey: p.remote.RKey}
		}
		if _, err := p.qa.Post([]ib.SendWR{wr}, nil); err != nil {
			t.Fatal(err)
		}
	}
	finish := clock.Time(0)
	for done := 0; done < ruleMessages; finish = w.now {
		for _, wc := range p.a.poll() {
			if wc.Status != ib.Success || wc.ID != uint64(done) {
				t.Fatalf("n=%d: completion %+v, want message %d", n, wc, done)
			}
			done++
		}
		if !w.step() && p.a.cq.Len() == 0 && done < ruleMessages {
			t.Fatalf("n=%d: stuck with %d of %d messages", n, done, ruleMessages)
		}
	}
	if !bytes.Equal(source, target) {
		t.Errorf("n=%d: wrong bytes", n)
	}
	need := ruleMessages * ((ruleSize + mtu.Bytes() - 1) / mtu.Bytes())
	again := int(p.a.Stats().Get("retransmitted"))
	if acks {
		// One packet, or a few after timeouts in a row, tells that all has arrived.
		if timeouts() > 2*n+1 || again > n*timeouts() || widest < transport.WindowStart {
			t.Errorf("n=%d: %d timeouts, %d packets sent again, the window grew to %d", n, timeouts(), again, widest)
		}
		return
	}
	// Each packet costs two timeouts at most, for after them it goes alone and then
	// with one more; a go-back repeats a small window.
	if timeouts() > 2*need || finish > clock.Time(ib.AckTimeout(14))*clock.Time(2*need+2) {
		t.Errorf("n=%d: %d timeouts for %d packets, done at %d", n, timeouts(), need, finish)
	}
	if sent, most := w.left[0]+w.left[1], (12+32/n)*need; sent > most {
		t.Errorf("n=%d: %d packets sent, %d needed", n, sent, need)
	}
}

func (p *pair) recvAt(id uint64, off, n int) {
	p.t.Helper()
	sge := ib.SGE{Addr: testBase + uint64(off), Length: uint32(n), LKey: ib.LKey(p.remote.RKey)}
	if _, err := p.qb.PostRecv([]ib.RecvWR{{ID: id, SGL: []ib.SGE{sge}}}); err != nil {
		p.t.Fatal(err)
	}
}
