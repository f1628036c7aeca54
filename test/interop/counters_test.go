//go:build linux

package interop

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/verbs"
)

// unhurried never comes to its timeout, of 17 s: what is counted has its cause on the link.
var unhurried = settings{timeout: 22, minRNR: 20}

// entry is what the two ends must have counted of one thing: the same number, from least to most.
type entry struct {
	here, there string // counters; one may be empty, where the other end has none for it
	least, most uint64 // most 0: any
}

func exactly(n uint64, here, there string) entry { return entry{here, there, n, n} }

func atLeast(n uint64, here, there string) entry { return entry{here, there, n, 0} }

// ledgers are exchanges with one kind of fault on the link, and all that the two ends must have counted of it: every other
// counter of trouble stays 0. A packet of path MTU 1024 is lost as the last but one of a message where a number depends
// on how many come behind it: rdma_rxe counts a gap, an RNIC and we count each packet after it.
var ledgers = []struct {
	name, rules string
	set         settings
	do          func(*mover)
	want        []entry
}{
	{
		"a WRITE packet of ours is lost", "drop 3rd write out", unhurried, func(d *mover) { d.write(4096) },
		[]entry{exactly(1, "nak_seq_rx", "out_of_seq_request"), exactly(1, "retries", ""), exactly(2, "retransmitted", "")},
	},
	{
		"a WRITE packet of the guest is lost", "drop 3rd write", unhurried, func(d *mover) { d.writeBack(4096) },
		[]entry{exactly(1, "oos_rx", "rcvd_seq_err"), exactly(1, "", "completer_retry_err")},
	},
	{
		// Of 40 packets between 1 and 37 are on their way when the NAK comes: the third and they go out again.
		"a packet of ours is lost in a long SEND", "drop 3rd send out", unhurried, func(d *mover) { d.send(40 << 10) },
		[]entry{exactly(1, "nak_seq_rx", "out_of_seq_request"), exactly(1, "retries", ""), {"retransmitted", "", 2, 38}},
	},
	{
		"a packet of the guest is lost in a long SEND", "drop 3rd send", unhurried, func(d *mover) { d.sendBack(40 << 10) },
		[]entry{{"oos_rx", "", 1, 37}, exactly(1, "", "rcvd_seq_err"), exactly(1, "", "completer_retry_err")},
	},
	{
		"WRITE packets of ours come twice", "dup write out", unhurried, func(d *mover) { d.write(4096) },
		[]entry{exactly(4, "", "duplicate_request")},
	},
	{
		"WRITE packets of the guest come twice", "dup write", unhurried, func(d *mover) { d.writeBack(4096) },
		[]entry{exactly(4, "duplicate_rx", "")},
	},
	{
		"READ requests of ours come twice", "dup read-request out", unhurried, func(d *mover) { d.read(4096) },
		[]entry{exactly(1, "", "duplicate_request")},
	},
	{
		"READ requests of the guest come twice", "dup read-request", unhurried, func(d *mover) { d.readBack(4096) },
		[]entry{exactly(1, "duplicate_rx", "")},
	},
	{
		"ATOMIC requests of ours come twice", "dup atomic out", unhurried, func(d *mover) { d.atomics(3) },
		[]entry{exactly(3, "", "duplicate_request")},
	},
	{
		"ATOMIC requests of the guest come twice", "dup atomic", unhurried, func(d *mover) { d.atomicsBack(3) },
		[]entry{exactly(3, "duplicate_rx", "")},
	},
	{
		"a READ response of the guest is lost", "drop 2nd read-response", unhurried, func(d *mover) { d.read(4096) },
		[]entry{exactly(1, "nak_seq_implied", ""), exactly(1, "retries", ""), exactly(1, "retransmitted", "duplicate_request")},
	},
	{
		// rdma_rxe waits for its timeout, and counts each time that it decides to send again: two decisions may become one packet.
		"a READ response of ours is lost", "drop 2nd read-response out",
		settings{timeout: 14},
		func(d *mover) { d.readBack(4096) },
		[]entry{atLeast(1, "duplicate_rx", ""), atLeast(1, "", "completer_retry_err")},
	},
	{
		"the guest has no receive", "", unhurried, (*mover).sendTooEarly,
		[]entry{atLeast(1, "rnr_nak_rx", "send_rnr_err"), atLeast(1, "retransmitted", "send_rnr_err")},
	},
	{
		"we have no receive", "", unhurried, (*mover).sendBackTooEarly,
		[]entry{atLeast(1, "rnr_tx", "rcvd_rnr_err")},
	},
	{
		// What was acknowledged and goes out again is a duplicate, however often a slow guest lets us send it.
		"an ACK of the guest is lost", "drop 1st ack",
		settings{timeout: 14},
		func(d *mover) { d.write(100) },
		[]entry{atLeast(1, "retransmitted", "duplicate_request"), atLeast(1, "ack_timeout", ""), atLeast(1, "retries", "")},
	},
	{
		// As with the READ response.
		"an ACK of ours is lost", "drop 1st ack out",
		settings{timeout: 14},
		func(d *mover) { d.writeBack(100) },
		[]entry{atLeast(1, "duplicate_rx", ""), atLeast(1, "", "completer_retry_err")},
	},
	{
		"nothing of ours arrives", "drop write out",
		settings{timeout: 14, retry: 2},
		(*mover).writeInVain,
		[]entry{
			exactly(1, "retry_exceeded", ""), exactly(3, "ack_timeout", ""), exactly(2, "retries", ""), exactly(2, "retransmitted", ""),
		},
	},
	{
		// A timer of rdma_rxe may run out before it has sent again: then it gives up without having counted that retry.
		"nothing of the guest arrives", "drop write",
		settings{timeout: 14, retry: 2},
		(*mover).writeBackInVain,
		[]entry{exactly(1, "", "retry_exceeded_err"), {"", "completer_retry_err", 1, 2}},
	},
}

// troubleHere and troubleThere are the counters that stay 0 where nothing goes wrong.
var (
	troubleHere = strings.Fields(`retransmitted duplicate_rx oos_rx nak_seq_rx nak_seq_implied ack_timeout retries retry_exceeded
		rnr_tx rnr_nak_rx rnr_retry_exceeded send_err`)
	troubleThere = strings.Fields(`duplicate_request out_of_seq_request rcvd_seq_err completer_retry_err retry_exceeded_err
		rcvd_rnr_err send_rnr_err retry_rnr_exceeded_err send_err`)
)

// TestCounters holds our counters to those of rdma_rxe: what one end did, or the link did to it, the other has counted.
func TestCounters(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	for i, l := range ledgers {
		t.Run(l.name, func(t *testing.T) {
			rules, err := fault.Parse(l.rules)
			if err != nil {
				t.Fatal(err)
			}
			var bad *fault.Link
			h := newHost(t, 2*dataBytes, func(inner link.Link) link.Link {
				if bad, err = fault.New(inner, fault.Config{Rules: rules, Seed: 1}); err != nil {
					t.Error(err)
					return inner
				}
				return bad
			})
			if bad == nil {
				t.FailNow()
			}
			a := h.account()
			before := h.dev.Counters()
			ctx := within(t, patience)
			l.do(&mover{pair: newPair(ctx, h, ib.RC, ipv4, l.set, dataBytes), ctx: ctx, rng: rand.New(rand.NewPCG(seed(t), uint64(i)))})
			if n := bad.Counts(); l.rules != "" && n.Dropped+n.Duplicated == 0 || n.Overflow > 0 {
				t.Errorf("the link did %+v by the rule %q", n, l.rules)
			}
			a.balance(before, bad, strings.Contains(l.rules, " out"), l.want)
			h.clean()
		})
	}
	complaints(t, network(t).Guest(1))
}

// balance fails the test unless the ends come to agree about all packets, less what the link has lost and with what it has
// doubled, and about the entries. out says that it did so to what we send.
func (a account) balance(before verbs.Counters, l *fault.Link, out bool, want []entry) {
	t := a.h.t
	t.Helper()
	ctx := within(t, patience/3)
	for {
		there := counters(t, a.h.net.Guest(1))
		for name, v := range there {
			there[name] = v - a.there[name]
		}
		now := a.h.dev.Counters()
		here := now.Sub(&before)
		wrong := disagreements(t, here, there, l.Counts(), out, want)
		if len(wrong) == 0 {
			return
		}
		if ctx.Err() != nil {
			t.Errorf("%s\ndropped on the way: %v", strings.Join(wrong, "\n"), drops(a.h.net))
			for info, v := range here.All() {
				if v != 0 {
					t.Logf("our %s: %d", info.Name, v)
				}
			}
			t.Logf("the guest's: %v; the link's: %+v", there, l.Counts())
			return
		}
	}
}

// disagreements are sentences about what the two ends have not counted alike.
func disagreements(t *testing.T, here verbs.Counters, there map[string]uint64, link fault.Counts, out bool, want []entry) (wrong []string) {
	t.Helper()
	ours := func(name string) uint64 {
		v, ok := here.Get(name)
		if !ok {
			t.Fatalf("we have no counter %s", name)
		}
		return v
	}
	theirs := func(name string) uint64 {
		v, ok := there[name]
		if !ok {
			t.Fatalf("the guest has no counter %s", name)
		}
		return v
	}
	lost := [2]uint64{}
	twice := [2]uint64{}
	i := 0
	if out {
		i = 1
	}
	lost[i], twice[i] = link.Dropped, link.Duplicated
	if sent, rcvd := ours("packets_tx"), theirs("rcvd_pkts"); rcvd != sent-lost[1]+twice[1] {
		wrong = append(wrong, fmt.Sprintf("we sent %d packets, %d were lost and %d doubled; the guest received %d", sent, lost[1], twice[1], rcvd))
	}
	if sent, rcvd := theirs("sent_pkts"), ours("packets_rx"); rcvd != sent-lost[0]+twice[0] {
		wrong = append(wrong, fmt.Sprintf("the guest sent %d packets, %d were lost and %d doubled; we received %d", sent, lost[0], twice[0], rcvd))
	}
	named := map[string]bool{}
	for _, e := range want {
		named["here "+e.here], named["there "+e.there] = true, true
		var sides []string
		var values []uint64
		if e.here != "" {
			sides, values = append(sides, "our "+e.here), append(values, ours(e.here))
		}
		if e.there != "" {
			sides, values = append(sides, "the guest's "+e.there), append(values, theirs(e.there))
		}
		for k, v := range values {
			if v != values[0] || v < e.least || e.most != 0 && v > e.most {
				wrong = append(wrong, fmt.Sprintf("%s is %d (%v), want the same from %d to %d", sides[k], v, values, e.least, e.most))
			}
		}
	}
	for _, name := range troubleHere {
		if v := ours(name); v != 0 && !named["here "+name] {
			wrong = append(wrong, fmt.Sprintf("our %s is %d, must be 0", name, v))
		}
	}
	for _, name := range troubleThere {
		if v := theirs(name); v != 0 && !named["there "+name] {
			wrong = append(wrong, fmt.Sprintf("the guest's %s is %d, must be 0", name, v))
		}
	}
	return wrong
}

// counted waits until our counter is no longer 0.
func (d *mover) counted(name string) {
	d.h.t.Helper()
	for {
		c := d.h.dev.Counters()
		switch v, ok := c.Get(name); {
		case !ok:
			d.h.t.Fatalf("no counter %s", name)
		case v > 0:
			return
		case d.ctx.Err() != nil:
			d.h.t.Fatalf("%s stays 0", name)
		}
		// It drives the device where nobody else does, and finds no completion.
		if n := d.h.cq.Poll(make([]ib.WC, 1)); n != 0 {
			d.h.t.Fatalf("a completion while %s is 0", name)
		}
	}
}

// sendTooEarly sends to a guest that posts its receive once it was asked for it.
func (d *mover) sendTooEarly() {
	d.h.t.Helper()
	if err := d.q.PostSend(ib.SendWR{Op: ib.Send, SGL: d.h.mr.SGE(0, 100), Flags: ib.Signaled}); err != nil {
		d.h.t.Fatal(err)
	}
	d.counted("rnr_nak_rx")
	d.p.recv(0, 100, 1)
	d.completed("SEND to a guest without a receive")
	d.p.good(1)
}

func (d *mover) sendBackTooEarly() {
	d.h.t.Helper()
	d.p.send(request{op: ib.Send, n: 100})
	d.counted("rnr_tx")
	if err := d.q.PostRecv(ib.RecvWR{SGL: d.h.mr.SGE(0, 100)}); err != nil {
		d.h.t.Fatal(err)
	}
	d.completed("SEND from the guest to us without a receive")
	d.p.good(1)
}

// writeInVain writes to where nothing arrives.
func (d *mover) writeInVain() {
	d.h.t.Helper()
	if err := d.q.PostSend(ib.SendWR{Op: ib.Write, SGL: d.h.mr.SGE(0, 100), Remote: d.p.at(0), Flags: ib.Signaled}); err != nil {
		d.h.t.Fatal(err)
	}
	var wcs [1]ib.WC
	if _, err := d.h.cq.Wait(d.ctx, wcs[:]); err != nil || wcs[0].Status != ib.RetryExcErr {
		d.h.t.Errorf("%v, error %v, want %v", wcs[0].Status, err, ib.RetryExcErr)
	}
}

func (d *mover) writeBackInVain() {
	d.h.t.Helper()
	d.p.send(request{op: ib.Write, n: 100, to: d.h.mr.Remote(0)})
	if wc := d.p.poll(1)[0]; wc.status != ib.RetryExcErr {
		d.h.t.Errorf("the guest's completion says %v, want %v", wc.status, ib.RetryExcErr)
	}
}
