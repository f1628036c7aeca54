package fault_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/link/internal/roce"
	"github.com/verbena-rdma/verbena/link/linktest"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/wire"
)

var (
	here  = netip.MustParseAddr("10.0.0.1")
	there = netip.MustParseAddr("10.0.0.2")
)

const qpn = ib.QPN(0x11)

func parse(t testing.TB, text string) []fault.Rule {
	t.Helper()
	r, err := fault.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func around(t testing.TB, l link.Link, rules string, seed uint64) *fault.Link {
	t.Helper()
	f, err := fault.New(l, fault.Config{Rules: parse(t, rules), Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// send commits runs of READ responses with consecutive PSNs, segs a run.
func send(t testing.TB, l link.Link, now clock.Time, psn, count, segs int) {
	t.Helper()
	for count > 0 {
		var tx [1]frame.Run
		if l.Reserve(tx[:]) != 1 {
			t.Fatal("Reserve lent nothing")
		}
		r := &tx[0]
		r.Src, r.Dst, r.SrcPort, r.TOS = here, there, 0xC0DE, 2
		for range min(segs, count) {
			roce.Append(r, wire.RCReadRespMiddle, qpn, ib.PSN(psn), 256)
			psn++
			count--
		}
		if err := l.Commit(now, tx[:]); err != nil {
			t.Fatal(err)
		}
	}
}

// got is what a test sees of a received packet.
type got struct {
	psn   int
	known bool // the ICRC is right for the packet's place in the piece
	right bool // the ICRC is right for some Identification
	tos   uint8
}

// receive takes what is there now.
func receive(t testing.TB, l link.Link, now clock.Time) []got {
	t.Helper()
	var all []got
	for {
		var rx [3]frame.Rx
		n, err := l.Recv(now, rx[:])
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return all
		}
		for _, p := range rx[:n] {
			f := roce.Flow(p.Src, p.Dst, p.SrcPort)
			seg := p.Seg
			if seg == 0 {
				seg = len(p.Data)
			}
			for i := 0; i*seg < len(p.Data); i++ {
				b := p.Data[i*seg : min((i+1)*seg, len(p.Data))]
				_, _, right := f.Solve(b)
				all = append(all, got{
					psn: int(b[9])<<16 | int(b[10])<<8 | int(b[11]), tos: p.TOS,
					known: f.Verify(uint16(i), true, b), right: right,
				})
			}
		}
		l.Release(rx[:n])
	}
}

func psns(list []got) string {
	var w []string
	for _, g := range list {
		w = append(w, fmt.Sprint(g.psn))
	}
	return strings.Join(w, " ")
}

// Each rule acts on packets 0 to 9, sent in runs of several lengths, and does
// the same whichever the direction and the run length.
func TestRules(t *testing.T) {
	for _, c := range []struct{ rules, at0, later string }{
		{"drop 3rd read-response qp=0x11", "0 1 3 4 5 6 7 8 9", ""},
		{"drop 3rd read-response qp=0x12", "0 1 2 3 4 5 6 7 8 9", ""},
		{"drop 3rd write", "0 1 2 3 4 5 6 7 8 9", ""},
		{"drop 1st", "1 2 3 4 5 6 7 8 9", ""},
		{"drop 10th", "0 1 2 3 4 5 6 7 8", ""},
		{"drop every 2nd", "0 2 4 6 8", ""},
		{"drop every 2nd times 2", "0 2 4 5 6 7 8 9", ""},
		{"drop", "", ""},
		{"drop psn=2..4", "0 1 5 6 7 8 9", ""},
		{"drop psn=0xfffffe..1", "2 3 4 5 6 7 8 9", ""},
		{"drop opcode=0x0e middle", "", ""},
		{"drop first last only", "0 1 2 3 4 5 6 7 8 9", ""},
		{"dup 3rd; dup 4th", "0 1 2 2 3 3 4 5 6 7 8 9", ""},
		{"reorder 2 3rd", "0 1 3 4 2 5 6 7 8 9", ""},
		{"reorder 1 every 3rd", "0 1 3 2 4 6 5 7 9 8", ""},
		{"reorder 3 9th", "0 1 2 3 4 5 6 7 9", "8"},
		{"delay 1ms 3rd", "0 1 3 4 5 6 7 8 9", "2"},
		{"delay 1ms", "", "0 1 2 3 4 5 6 7 8 9"},
		{"delay 1ms 1st; delay 500us 2nd", "2 3 4 5 6 7 8 9", "1 0"},
		{"dup 3rd; delay 1ms psn=2", "0 1 2 3 4 5 6 7 8 9", "2"},
		{"drop after 3", "0 1 2", ""},
		{"drop after 3 for 2", "0 1 2 5 6 7 8 9", ""},
		{"drop for 2", "2 3 4 5 6 7 8 9", ""},
		{"drop 2nd after 3", "0 1 2 3 5 6 7 8 9", ""},
		{"drop every 2nd after 5 times 1", "0 1 2 3 4 5 7 8 9", ""},
		{"drop 3rd after 3 for 2", "0 1 2 3 4 5 6 7 8 9", ""},
		{"drop after 1ms", "0 1 2 3 4 5 6 7 8 9", ""},
		{"drop for 1ms", "", ""},
		{"drop 3rd peer=10.0.0.0/24", "0 1 3 4 5 6 7 8 9", ""},
		{"drop 3rd peer=10.0.1.0/24", "0 1 2 3 4 5 6 7 8 9", ""},
		{"drop peer=fd00::1 peer=10.0.0.0/8 psn=4", "0 1 2 3 5 6 7 8 9", ""},
		{"drop 2nd; drop 2nd", "0 3 4 5 6 7 8 9", ""}, // the second stage does not see what the first dropped
	} {
		for _, out := range []string{"", " out"} {
			for _, segs := range []int{1, 3, 4, 10} {
				rules := strings.ReplaceAll(c.rules, ";", out+";") + out
				t.Run(fmt.Sprintf("%s/segs=%d", rules, segs), func(t *testing.T) {
					a, b := pair.New(pair.Config{})
					var tx, rx link.Link = a, b
					if out != "" {
						tx = around(t, a, rules, 1)
					} else {
						rx = around(t, b, rules, 1)
					}
					send(t, tx, 0, 0, 10, segs)
					first := receive(t, rx, 0)
					if s := psns(first); s != c.at0 {
						t.Errorf("at once: %s, want %s", s, c.at0)
					}
					const later = clock.Time(time.Millisecond)
					if err := tx.Commit(later, nil); err != nil {
						t.Fatal(err)
					}
					second := receive(t, rx, later)
					if s := psns(second); s != c.later {
						t.Errorf("after 1 ms: %s, want %s", s, c.later)
					}
					for _, g := range append(first, second...) {
						if !g.right || out != "" && !g.known {
							t.Errorf("PSN %d: ICRC wrong", g.psn)
						}
					}
				})
			}
		}
	}
}

func TestCorruptSpoilsOneBit(t *testing.T) {
	for _, rules := range []string{"corrupt 3rd", "corrupt 3rd out", "corrupt 3rd; dup 3rd", "corrupt 3rd; delay 1ms 3rd; dup 3rd"} {
		a, b := pair.New(pair.Config{})
		var tx, rx link.Link = a, b
		if strings.Contains(rules, "out") {
			tx = around(t, a, rules, 1)
		} else {
			rx = around(t, b, rules, 1)
		}
		send(t, tx, 0, 0, 5, 5)
		all := append(receive(t, rx, 0), receive(t, rx, clock.Time(time.Millisecond))...)
		wrong, want := 0, 1+strings.Count(rules, "dup")
		for _, g := range all {
			if !g.right {
				wrong++
			}
		}
		if wrong != want || len(all) != 4+want {
			t.Errorf("%s: %d packets, %d wrong; want %d and %d", rules, len(all), wrong, 4+want, want)
		}
	}
}

func TestMarkChangesOnlyECNCapablePackets(t *testing.T) {
	for _, rules := range []string{"ce every 2nd", "ce every 2nd out"} {
		a, b := pair.New(pair.Config{})
		var tx, rx link.Link = a, b
		f := (*fault.Link)(nil)
		if strings.Contains(rules, "out") {
			f = around(t, a, rules, 1)
			tx = f
		} else {
			f = around(t, b, rules, 1)
			rx = f
		}
		send(t, tx, 0, 0, 4, 4)
		for i, g := range receive(t, rx, 0) {
			want := uint8(2)
			if i%2 == 1 {
				want = 3
			}
			if g.tos != want || !g.right || g.psn != i {
				t.Errorf("%s: packet %d: %+v, want TOS %d", rules, i, g, want)
			}
		}
		if c := f.Counts(); c.Marked != 2 || c.Seen != 4 {
			t.Errorf("%s: counts %+v", rules, c)
		}
	}
}

func TestSameSeedSameFaults(t *testing.T) {
	const rules = "loss 10%; dup 5%; reorder 5%; delay 1ms 5%; corrupt 3%"
	run := func(seed uint64, segs int) (string, fault.Counts) {
		a, b := pair.New(pair.Config{})
		f := around(t, b, rules, seed)
		var all []got
		for i := range 100 {
			now := clock.Time(i) * clock.Time(100*time.Microsecond)
			send(t, a, now, i*10, 10, segs)
			all = append(all, receive(t, f, now)...)
		}
		all = append(all, receive(t, f, clock.Never-1)...)
		return psns(all), f.Counts()
	}
	one, counts := run(7, 10)
	two, _ := run(7, 10)
	if one != two {
		t.Error("one seed, two results")
	}
	if three, _ := run(8, 10); one == three {
		t.Error("two seeds, one result")
	}
	if counts.Seen != 1000 || counts.Dropped == 0 || counts.Duplicated == 0 || counts.Reordered == 0 || counts.Delayed == 0 || counts.Corrupted == 0 {
		t.Errorf("counts %+v", counts)
	}
	n := len(strings.Fields(one))
	if want := 1000 - int(counts.Dropped) + int(counts.Duplicated); n != want {
		t.Errorf("%d packets arrived, want %d", n, want)
	}
}

func TestHeldPacketEndsWait(t *testing.T) {
	a, b := pair.New(pair.Config{})
	f := around(t, b, "delay 1ms", 1)
	send(t, a, 0, 0, 1, 1)
	if g := receive(t, f, 0); len(g) != 0 {
		t.Fatalf("received %v at once", g)
	}
	// Both waits end by themselves: the first for the wake-up that came with the
	// earlier deadline.
	for range 2 {
		if err := f.Wait(0, clock.Never); err != nil {
			t.Fatal(err)
		}
	}
	if g := receive(t, f, clock.Time(time.Millisecond)); psns(g) != "0" {
		t.Errorf("received %v", g)
	}
}

func TestSeedIsReported(t *testing.T) {
	a, _ := pair.New(pair.Config{})
	if s := around(t, a, "loss 1%", 42).Seed(); s != 42 {
		t.Errorf("seed %d", s)
	}
	if s := around(t, a, "loss 1%", 0).Seed(); s == 0 {
		t.Error("no seed chosen")
	}
}

func TestParseSaysWhereAndWhat(t *testing.T) {
	for _, c := range []struct {
		text         string
		line, column int
		reason       string
	}{
		{"explode", 1, 1, "unknown action"},
		{"drop 3rd red-response", 1, 10, "unknown condition"},
		{"drop; dup 5", 1, 11, "unknown condition"},
		{"loss", 1, 5, "percentage"},
		{"loss write", 1, 6, "percentage"},
		{"loss 0%", 1, 6, "more than 0"},
		{"loss 101%", 1, 6, "at most 100"},
		{"loss NaN%", 1, 6, "percentage"},
		{"delay", 1, 6, "duration"},
		{"delay 5", 1, 7, "duration"},
		{"delay -1ms", 1, 7, "duration"},
		{"reorder 0 1%", 1, 9, "1 to"},
		{"drop qp=0x1000000", 1, 6, "0xffffff"},
		{"drop qp=x", 1, 6, "number"},
		{"drop psn=5..", 1, 6, "number"},
		{"drop opcode=256", 1, 6, "0xff"},
		{"drop color=red", 1, 6, "unknown field"},
		{"drop every", 1, 11, "number"},
		{"drop times 0", 1, 12, "number"},
		{"drop after", 1, 11, "duration"},
		{"drop after -1s", 1, 12, "duration"},
		{"drop for 0", 1, 10, "duration"},
		{"drop peer=nobody", 1, 6, "an address or a prefix"},
		{"drop peer=::ffff:10.0.0.0/120", 1, 6, "an address or a prefix"},
		{"drop 0th", 1, 6, "unknown condition"},
		{"drop 3rd 1%", 1, 1, "also others"},
		{"loss 1%\n dup 5%% # comment", 2, 6, "percentage"},
	} {
		_, err := fault.Parse(c.text)
		var pe *fault.ParseError
		if !errors.As(err, &pe) {
			t.Errorf("%q: error %v", c.text, err)
			continue
		}
		if pe.Line != c.line || pe.Column != c.column || !strings.Contains(pe.Reason, c.reason) {
			t.Errorf("%q: line %d column %d %q, want line %d column %d … %q …", c.text, pe.Line, pe.Column, pe.Reason, c.line, c.column, c.reason)
		}
	}
}

func TestParseAndString(t *testing.T) {
	for text, want := range map[string]string{
		"drop 3rd read-response qp=0x11; loss 1%; dup 0.5%; reorder 2%; delay 1ms 5%": "drop 3rd read-response qp=0x11; drop 1%; dup 0.5%; reorder 2%; delay 1ms 5%",
		" ;; # nothing\n": "",
		"drop for 5 after 1s after 7 for 2ms peer=10.0.0.2 both peer=fd00::1/64":   "drop peer=10.0.0.2/32 peer=fd00::/64 after 7 after 1s for 5 for 2ms both",
		"ce out times 3 ack atomic-ack psn=0x10 last first opcode=17 qp=1 qp=2":    "ce first last atomic-ack ack opcode=0x11 qp=0x1 qp=0x2 psn=16..16 times 3 out",
		"duplicate every 11th cnp\nreorder 7 22nd\ncorrupt 113th nak rnr-nak send": "dup every 11th cnp; reorder 7 22nd; corrupt 113th send rnr-nak nak",
	} {
		if got := text2text(parse(t, text)); got != want {
			t.Errorf("%q\n gives %q,\n want  %q", text, got, want)
		} else if again := text2text(parse(t, got)); again != got {
			t.Errorf("%q, printed and parsed, gives %q", got, again)
		}
	}
}

func text2text(rules []fault.Rule) string {
	var w []string
	for _, r := range rules {
		w = append(w, r.String())
	}
	return strings.Join(w, "; ")
}

func FuzzParse(f *testing.F) {
	f.Add("drop 3rd read-response qp=0x11; loss 1%; dup 0.5%; reorder 2%; delay 1ms 5%")
	f.Add("ce out times 3 ack psn=0x10..3 # x\ncorrupt every 5th")
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := fault.Parse(text)
		if err != nil {
			var pe *fault.ParseError
			if !errors.As(err, &pe) || pe.Line < 1 || pe.Column < 1 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if _, err := fault.Parse(text2text(rules)); err != nil && !slices.ContainsFunc(rules, func(r fault.Rule) bool { return r.Rate != 0 && r.Rate < 1e-7 }) {
			t.Fatalf("%q prints as %q: %v", text, text2text(rules), err)
		}
	})
}

func TestRulesOfProgramsAreChecked(t *testing.T) {
	a, _ := pair.New(pair.Config{})
	defer a.Close()
	for _, r := range []fault.Rule{{}, {Action: fault.Drop, From: -1}, {Action: fault.Drop, Lasts: -1}, {Action: fault.Drop, Peers: make([]netip.Prefix, 1)}, {Action: 99}, {Action: fault.Delay}, {Action: fault.Drop, Rate: 2}, {Action: fault.Drop, Rate: -1}, {Action: fault.Reorder, Distance: -1}, {Action: fault.Drop, Nth: 1, Every: 2}} {
		if _, err := fault.New(a, fault.Config{Rules: []fault.Rule{r}}); err == nil {
			t.Errorf("%+v: no error", r)
		}
	}
	c, _ := pair.New(pair.Config{Caps: link.Caps{Encap: frame.Ethernet + 1}})
	defer c.Close()
	if _, err := fault.New(c, fault.Config{}); err == nil {
		t.Error("frames of an unknown kind: no error")
	}
}

// What never fires changes nothing, whichever road the packets take.
func TestConformance(t *testing.T) {
	for name, rules := range map[string]string{
		"no rules": "",
		"in":       "drop 1000000000th; delay 1s qp=1 psn=1 opcode=0xff",
		"out":      "drop 1000000000th out; delay 1s qp=1 psn=1 opcode=0xff out",
	} {
		t.Run(name, func(t *testing.T) {
			linktest.Run(t, linktest.Suite{Marks: true, Lossless: true, AnyAddress: true, Open: func(tb testing.TB) (a, b linktest.End) {
				x, y := pair.New(pair.Config{})
				return linktest.End{Link: around(tb, x, rules, 1), Addr: here}, linktest.End{Link: around(tb, y, rules, 1), Addr: there}
			}})
		})
	}
}

// Faults do not allocate once their buffers are there.
func TestFaultsDoNotAllocate(t *testing.T) {
	const rules = "dup 30%; reorder 20%; delay 1ms 20%; corrupt 10%; drop 5%; ce 5%"
	a, b := pair.New(pair.Config{})
	tx := around(t, a, strings.ReplaceAll(rules, ";", " out;")+" out", 1)
	rx := around(t, b, rules, 2)
	var runs [1]frame.Run
	var pieces [8]frame.Rx
	now := clock.Time(0)
	cycle := func() {
		now += clock.Time(300 * time.Microsecond)
		if tx.Reserve(runs[:]) == 1 {
			r := &runs[0]
			r.Src, r.Dst, r.SrcPort, r.N, r.Seg, r.Segs = here, there, 0xC0DE, 1000, 100, 10
			_ = tx.Commit(now, runs[:])
		}
		for {
			n, _ := rx.Recv(now, pieces[:])
			rx.Release(pieces[:n])
			if n == 0 {
				return
			}
		}
	}
	const warm = 2000
	for range warm {
		cycle()
	}
	if n := testing.AllocsPerRun(500, cycle); n != 0 {
		t.Errorf("%v allocations for a run", n)
	}
}

// Whatever a rule does with all packets of a batch, those that come later are
// received: by a caller, too, that releases only where it was handed something.
func TestBatchOfWhichNothingIsLeft(t *testing.T) {
	for _, rule := range []string{"drop times 3", "delay 1ms times 3", "reorder 5 times 3", "drop times 1"} {
		a, b := pair.New(pair.Config{})
		f := around(t, b, rule, 1)
		now := clock.Time(0)
		for i := range 8 {
			send(t, a, now, i, 1, 1)
			var rx [4]frame.Rx
			n, err := f.Recv(now, rx[:])
			if err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				f.Release(rx[:n])
			}
			if i >= 3 && n == 0 {
				t.Errorf("%s: packet %d was not received", rule, i)
			}
		}
		_ = a.Close()
	}
}

// Time windows begin with the first use of the link, whatever the clock says
// then, and each rule says what it met and did, and when.
func TestTimeWindowAndRuleCounts(t *testing.T) {
	const start, ms = clock.Time(12345), clock.Time(time.Millisecond)
	a, b := pair.New(pair.Config{})
	f := around(t, b, "drop after 2ms for 3ms; dup every 2nd; drop qp=0x12", 1)
	var all []got
	for i := range 8 {
		now := start + clock.Time(i)*ms
		if i == 0 {
			receive(t, f, now)
		}
		send(t, a, now, i, 1, 1)
		all = append(all, receive(t, f, now)...)
	}
	if s := psns(all); s != "0 1 1 5 6 6 7" { // 5 is the third that the second rule sees, 6 the fourth
		t.Errorf("received %s", s)
	}
	want := []fault.RuleCount{
		{Met: 3, Hits: 3, First: 2 * time.Millisecond, Last: 4 * time.Millisecond},
		{Met: 5, Hits: 2, First: time.Millisecond, Last: 6 * time.Millisecond},
		{},
	}
	if got := f.Rules(); !slices.Equal(got, want) {
		t.Errorf("rules did %+v,\n want %+v", got, want)
	}
}

// A rule for both directions counts them together.
func TestBothDirectionsAreCountedTogether(t *testing.T) {
	a, b := pair.New(pair.Config{})
	f := around(t, b, "drop every 3rd both", 1)
	var in, out []got
	for i := range 6 { // one in, one out, …: the 3rd and the 9th came in, the 6th and the 12th left
		send(t, a, 0, i, 1, 1)
		in = append(in, receive(t, f, 0)...)
		send(t, f, 0, i, 1, 1)
		out = append(out, receive(t, a, 0)...)
	}
	if psns(in) != "0 2 3 5" || psns(out) != "0 1 3 4" {
		t.Errorf("in %s, out %s", psns(in), psns(out))
	}
}

// A rule can be for the queue pair of this host: the destination of what comes
// in, the sender of what leaves.
func TestLocalQueuePair(t *testing.T) {
	for _, out := range []bool{false, true} {
		a, b := pair.New(pair.Config{})
		mine := qpn
		if out {
			mine = 0x77
		}
		f, err := fault.New(b, fault.Config{Seed: 1, Rules: []fault.Rule{{Action: fault.Drop, Nth: 2, Out: out, Local: func(q ib.QPN) bool { return q == mine }}}})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var tx, rx link.Link = a, f
		if out {
			tx, rx = f, a
		}
		for i := range 4 {
			var runs [1]frame.Run
			if tx.Reserve(runs[:]) != 1 {
				t.Fatal("Reserve lent nothing")
			}
			r := &runs[0]
			r.Src, r.Dst, r.SrcPort, r.QPN = here, there, 0xC0DE, 0x77
			roce.Append(r, wire.RCSendOnly, qpn, ib.PSN(i), 256)
			if err := tx.Commit(0, runs[:]); err != nil {
				t.Fatal(err)
			}
		}
		if s := psns(receive(t, rx, 0)); s != "0 2 3" {
			t.Errorf("out %v: %s", out, s)
		}
	}
}
