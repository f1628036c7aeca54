package work

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"pgregory.net/rapid"
)

const (
	us     = sim.Microsecond
	gig100 = 100 * sim.Gbps
)

func rnd() *sim.Rand { return sim.NewRand(1, "test") }

// take returns up to n flows of a workload, after looking at what holds for
// every stream: IDs count up, starts ascend, nobody waits for a later flow.
func take(t testing.TB, w Workload, n int) []Flow {
	t.Helper()
	s, err := w.Stream(rnd())
	if err != nil {
		t.Fatal(err)
	}
	return takeFrom(t, s, n)
}

func takeFrom(t testing.TB, s Stream, n int) []Flow {
	t.Helper()
	var flows []Flow
	last := sim.Time(0)
	for len(flows) < n {
		finite := s.Finite()
		f, ok := s.Next()
		if !ok {
			if s.Finite() || s.Err() != nil {
				t.Fatalf("the stream ends: %v, %v", s.Finite(), s.Err())
			}
			break
		}
		if !finite && !f.Endless {
			t.Fatal("a flow comes that a run would wait for, unforeseen")
		}
		if int(f.ID) != len(flows) {
			t.Fatalf("flow %d has ID %d", len(flows), f.ID)
		}
		for _, a := range f.After {
			if a < 0 || a >= f.ID {
				t.Fatalf("flow %d waits for %d", f.ID, a)
			}
		}
		if len(f.After) == 0 {
			if f.Start < last {
				t.Fatalf("flow %d starts at %s, one before it at %s", f.ID, f.Start, last)
			}
			last = f.Start
		}
		flows = append(flows, f)
	}
	return flows
}

func show(flows []Flow) []string {
	var out []string
	for _, f := range flows {
		s := fmt.Sprintf("%d>%d %dB at %s", f.Src, f.Dst, f.Bytes, f.Start)
		if len(f.After) > 0 {
			s += fmt.Sprintf(" after %v", f.After)
		}
		if f.QP != 0 {
			s += fmt.Sprintf(" qp %d", f.QP)
		}
		if f.Endless {
			s += " endless"
		}
		out = append(out, s)
	}
	return out
}

func want(t *testing.T, flows []Flow, lines ...string) {
	t.Helper()
	if d := cmp.Diff(lines, show(flows)); d != "" {
		t.Error(d)
	}
}

func TestIncast(t *testing.T) {
	want(t, take(t, Incast{Senders: []int32{3, 1}, Receiver: 0, Bytes: 5, Start: us}, 9), "3>0 5B at 1us", "1>0 5B at 1us")
	want(t, take(t, Incast{Senders: []int32{3, 1, 2}, Receiver: 0, Bytes: 5, Every: us}, 9), "3>0 5B at 0ps", "1>0 5B at 1us", "2>0 5B at 2us")
	var senders []int32
	for i := range int32(1000) {
		senders = append(senders, i+1)
	}
	as := Flow{Op: Send, Prio: 3, DSCP: 26, QPs: 2, Group: "in", Message: 4096, Service: 1, SrcPort: 7, Rate: 8, Src: 99, After: []int32{1}}
	flows := take(t, Incast{Senders: senders, Receiver: 0, Bytes: 5, Start: us, Jitter: us, As: as}, 2000)
	early := 0
	for _, f := range flows {
		if f.Start < us || f.Start >= 2*us {
			t.Fatalf("start %s", f.Start)
		}
		if f.Start < us+us/2 {
			early++
		}
	}
	if early < 400 || early > 600 || len(flows) != 1000 { // 500 ± 6 standard deviations of 16
		t.Errorf("%d of %d in the first half", early, len(flows))
	}
	got := flows[0]
	as.Src, as.Bytes, as.Start, as.After = got.Src, 5, got.Start, nil
	if d := cmp.Diff(as, got); d != "" {
		t.Error(d)
	}
}

func TestBursts(t *testing.T) {
	b := Bursts{Src: 1, Dst: 2, Bytes: 128_000, Start: us, Every: 400 * us}
	with := func(count int64, until sim.Time) Bursts { b.Count, b.Until = count, until; return b }
	want(t, take(t, with(2, 0), 9), "1>2 128000B at 1us", "1>2 128000B at 401us")
	want(t, take(t, with(0, 801*us), 9), "1>2 128000B at 1us", "1>2 128000B at 401us", "1>2 128000B at 801us")
	want(t, take(t, with(0, 801*us-1), 9), "1>2 128000B at 1us", "1>2 128000B at 401us")
	want(t, take(t, with(1, 801*us), 9), "1>2 128000B at 1us")
	want(t, take(t, with(3, us/2), 9))
	want(t, take(t, with(0, 0), 1), "1>2 128000B at 1us endless")
	if n := len(take(t, with(0, 0), 5000)); n != 5000 {
		t.Errorf("%d", n)
	}
	j := with(3000, 0)
	j.Jitter, j.As.QP = j.Every, 4
	for i, f := range take(t, j, 9999) {
		if at := f.Start - us - 400*us*sim.Time(i); at < 0 || at >= 400*us || f.QP != 4 {
			t.Fatalf("burst %d at %s", i, f.Start)
		}
	}
}

func TestLongAndExplicit(t *testing.T) {
	want(t, take(t, Long{Src: 1, Dst: 2, Bytes: 7, Start: us}, 9), "1>2 7B at 1us")
	want(t, take(t, Long{Src: 1, Dst: 2}, 9), "1>2 0B at 0ps endless")
	want(t, take(t, Explicit{Start: us, Flows: []Flow{
		{Src: 1, Dst: 2, Bytes: 3, Start: 2 * us},
		{Src: 2, Dst: 3, Bytes: 4, After: []int32{3, 0}, Start: 5},
		{Src: 3, Dst: 4, Bytes: 5, Start: us},
		{Src: 4, Dst: 5, Bytes: 6},
	}}, 9), "4>5 6B at 1us", "3>4 5B at 2us", "1>2 3B at 3us", "2>3 4B at 5ps after [0 2]")
}

// A permutation maps every endpoint to one of another group, each once, in
// every round.
func TestPermutation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		per := rapid.IntRange(1, 6).Draw(rt, "per group")
		groups := rapid.IntRange(2, 6).Draw(rt, "groups")
		rounds := rapid.IntRange(1, 3).Draw(rt, "rounds")
		w := Permutation{Bytes: 1, Rounds: rounds, Every: us}
		for i := range per * groups {
			w.Endpoints = append(w.Endpoints, int32(10+i))
		}
		if rapid.Bool().Draw(rt, "grouped") {
			w.Apart = func(e int32) int32 { return (e - 10) % int32(groups) }
		}
		s, err := w.Stream(sim.NewRand(rapid.Uint64().Draw(rt, "seed"), ""))
		if err != nil {
			rt.Fatal(err)
		}
		flows, _ := Collect(s, MaxFlows)
		if len(flows) != rounds*len(w.Endpoints) {
			rt.Fatalf("%d flows", len(flows))
		}
		seen := map[[3]int64]bool{}
		for _, f := range flows {
			round := int64(f.Start / us)
			a, b := [3]int64{round, 0, int64(f.Src)}, [3]int64{round, 1, int64(f.Dst)}
			if seen[a] || seen[b] || f.Src == f.Dst || w.Apart != nil && w.Apart(f.Src) == w.Apart(f.Dst) {
				rt.Fatalf("%+v", f)
			}
			seen[a], seen[b] = true, true
		}
	})
}

// Every partner is about as likely: of 3 others each in 1/3 of 3,000 rounds,
// ± 6 standard deviations of 26; in cross-leaf permutations too.
func TestPermutationSpreads(t *testing.T) {
	for _, apart := range []func(int32) int32{nil, func(e int32) int32 { return e / 2 }} {
		n := int32(4)
		if apart != nil {
			n = 6 // two in the own leaf, four possible partners
		}
		w := Permutation{Bytes: 1, Rounds: 3000, Apart: apart}
		for i := range n {
			w.Endpoints = append(w.Endpoints, i)
		}
		count := map[[2]int32]int{}
		for _, f := range take(t, w, MaxFlows) {
			count[[2]int32{f.Src, f.Dst}]++
		}
		partners := int(n) - 1
		if apart != nil {
			partners = 4
		}
		if len(count) != partners*int(n) {
			t.Fatalf("%d pairs", len(count))
		}
		for p, c := range count {
			if d := c - 3000/partners; d < -250 || d > 250 {
				t.Errorf("%v: %d of 3000", p, c)
			}
		}
	}
}

func TestAllToAll(t *testing.T) {
	want(t, take(t, AllToAll{Endpoints: []int32{5, 6, 7}, Bytes: 1}, 9),
		"5>6 1B at 0ps", "6>7 1B at 0ps", "7>5 1B at 0ps", "5>7 1B at 0ps", "6>5 1B at 0ps", "7>6 1B at 0ps")
	want(t, take(t, AllToAll{Endpoints: []int32{5, 6, 7}, Bytes: 1, Window: 1, Start: us, Gap: 5}, 9),
		"5>6 1B at 1us", "6>7 1B at 1us", "7>5 1B at 1us", "5>7 1B at 5ps after [0]", "6>5 1B at 5ps after [1]", "7>6 1B at 5ps after [2]")
	// The second round of a pair waits for its first.
	want(t, take(t, AllToAll{Endpoints: []int32{5, 6}, Bytes: 1, Rounds: 2}, 9),
		"5>6 1B at 0ps", "6>5 1B at 0ps", "5>6 1B at 0ps after [0]", "6>5 1B at 0ps after [1]")
	// Two hosts of two NICs: only between hosts.
	flows := take(t, AllToAll{Endpoints: []int32{0, 1, 2, 3}, Bytes: 1, Window: 1, Apart: func(e int32) int32 { return e / 2 }}, 99)
	if len(flows) != 8 {
		t.Errorf("%v", show(flows))
	}
	for _, f := range flows {
		if f.Src/2 == f.Dst/2 || len(f.After) > 1 || len(f.After) == 1 && flows[f.After[0]].Src != f.Src {
			t.Errorf("%+v", f)
		}
	}
}

// Data of an all-reduce, as a set of ranks whose contributions it has, must be
// complete everywhere in the end. A flow hands on what it waited for.
func TestAllReduceRing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 9).Draw(rt, "ranks")
		chunks := rapid.IntRange(1, 3).Draw(rt, "chunks")
		rounds := rapid.IntRange(1, 2).Draw(rt, "rounds")
		w := AllReduceRing{Chunks: chunks, Rounds: rounds, Bytes: int64(n*chunks + rapid.IntRange(0, 50).Draw(rt, "more")), Gap: us, Start: 3}
		w.Jitter = sim.Time(rapid.IntRange(0, 1).Draw(rt, "jitter")) * us
		for i := range n {
			w.Ranks = append(w.Ranks, int32(100+i))
		}
		flows := take(t, w, MaxFlows)
		steps := 2 * (n - 1)
		if len(flows) != rounds*steps*chunks*n {
			rt.Fatalf("%d flows", len(flows))
		}
		type piece struct{ segment, chunk int }
		what := make([]piece, len(flows)) // a flow carries
		depth := make([]int, len(flows))  // and is step so many
		has := make([]map[piece]uint, n)  // rank's contributions
		begin := func() {
			for r := range has {
				has[r] = map[piece]uint{}
				for s := range n {
					for c := range chunks {
						has[r][piece{s, c}] = 1 << r
					}
				}
			}
		}
		begin()
		first := make([]int, n) // of this round: chunks begun by each rank
		size := map[piece]int64{}
		total, inRound := int64(0), 0
		for i, f := range flows {
			from, to := int(f.Src-100), int(f.Dst-100)
			if to != (from+1)%n || f.QP != int32(from+1) {
				rt.Fatalf("%+v", f)
			}
			if len(f.After) == 0 || depth[f.After[0]] == steps-1 { // first step of a round
				what[i] = piece{from, first[from] % chunks}
				first[from]++
				if len(f.After) == 1 && (f.Start != us || flows[f.After[0]].Dst != f.Src) {
					rt.Fatalf("round begins: %+v", f)
				}
			} else {
				a := f.After[0]
				if len(f.After) != 1 || flows[a].Dst != f.Src || f.Start != 0 {
					rt.Fatalf("%+v after %+v", f, flows[a])
				}
				what[i], depth[i] = what[a], depth[a]+1
			}
			p := what[i]
			if b, ok := size[p]; ok && b != f.Bytes {
				rt.Fatalf("piece %v has %d and %d bytes", p, b, f.Bytes)
			}
			size[p] = f.Bytes
			total += f.Bytes
			if depth[i] < n-1 {
				has[to][p] |= has[from][p]
			} else {
				has[to][p] = has[from][p]
			}
			if inRound++; inRound == steps*chunks*n && w.Jitter == 0 {
				for r := range has {
					for p, m := range has[r] {
						if m != 1<<n-1 {
							rt.Fatalf("rank %d lacks some of %v: %b", r, p, m)
						}
					}
				}
				begin()
				inRound = 0
			}
		}
		sum := int64(0)
		for _, b := range size {
			sum += b
		}
		if sum != w.Bytes || total != int64(rounds)*int64(steps)*w.Bytes { // 2(N-1)/N of Bytes by each of N
			rt.Fatalf("segments have %d bytes, flows %d, buffer %d", sum, total, w.Bytes)
		}
	})
}

func TestAllReduceTree(t *testing.T) {
	want(t, take(t, AllReduceTree{Ranks: []int32{5, 6, 7, 8}, Bytes: 9, Start: us}, 99),
		"8>6 9B at 1us qp 5", "7>5 9B at 1us qp 3", "6>5 9B at 0ps after [0] qp 1",
		"5>6 9B at 0ps after [2 1] qp 2", "5>7 9B at 0ps after [2 1] qp 4", "6>8 9B at 0ps after [3] qp 6")
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 20).Draw(rt, "ranks")
		chunks := rapid.IntRange(1, 3).Draw(rt, "chunks")
		rounds := rapid.IntRange(1, 3).Draw(rt, "rounds")
		w := AllReduceTree{Chunks: chunks, Rounds: rounds, Bytes: int64(chunks + rapid.IntRange(0, 50).Draw(rt, "more")), Gap: us}
		for i := range n {
			w.Ranks = append(w.Ranks, int32(i))
		}
		flows := take(t, w, MaxFlows)
		if len(flows) != rounds*chunks*2*(n-1) {
			rt.Fatalf("%d flows", len(flows))
		}
		total := int64(0)
		for c := range rounds * chunks {
			has := make([]uint, n)
			for r := range has {
				has[r] = 1 << r
			}
			for _, f := range flows[c*2*(n-1) : (c+1)*2*(n-1)] {
				total += f.Bytes
				up := f.Dst < f.Src
				for _, a := range f.After { // it has what it waited for
					g := flows[a]
					if g.Dst != f.Src {
						rt.Fatalf("%+v waits for %+v", f, g)
					}
				}
				if up {
					has[f.Dst] |= has[f.Src]
				} else {
					has[f.Dst] = has[f.Src]
					if has[f.Src] != 1<<n-1 {
						rt.Fatalf("%+v goes down too early", f)
					}
				}
				children := 0
				for k := 2*f.Src + 1; k <= 2*f.Src+2 && int(k) < n; k++ {
					children++
				}
				switch later := c >= chunks; {
				case up && children > 0, !up && f.Src == 0:
					if len(f.After) != children {
						rt.Fatalf("%+v: %d children", f, children)
					}
				case up && !later:
					if len(f.After) != 0 {
						rt.Fatalf("%+v", f)
					}
				default:
					if len(f.After) != 1 || up && f.Start != us {
						rt.Fatalf("%+v", f)
					}
				}
			}
			for r := range has {
				if has[r] != 1<<n-1 {
					rt.Fatalf("rank %d has %b", r, has[r])
				}
			}
		}
		if total != int64(rounds)*int64(2*(n-1))*w.Bytes {
			rt.Fatalf("%d bytes", total)
		}
	})
}

func TestInvalidWorkloads(t *testing.T) {
	two := []int32{1, 2}
	cdf, _ := NamedCDF("websearch")
	poisson := func(f func(*Poisson)) Poisson {
		p := Poisson{Sources: two, CDF: cdf, Rate: gig100, LoadPPM: 300_000}
		f(&p)
		return p
	}
	leaf := func(e int32) int32 { return e / 10 }
	for _, c := range []struct {
		w    Workload
		want string
	}{
		{Incast{Receiver: 1, Bytes: 1}, "incast: senders are 0, fewer than 1"},
		{Incast{Senders: []int32{1, 1}, Bytes: 1}, "incast: senders name endpoint 1 twice"},
		{Incast{Senders: two, Receiver: 2, Bytes: 1}, "incast: receiver 2 is a sender too"},
		{Incast{Senders: two, Receiver: -1, Bytes: 1}, "incast: receiver -1 is no endpoint"},
		{Incast{Senders: two, Receiver: 3}, "incast: bytes 0 is less than 1"},
		{Incast{Senders: two, Receiver: 3, Bytes: 1 << 60}, "incast: bytes 1152921504606846976 is over the limit of 1125899906842624"},
		{Incast{Senders: two, Receiver: 3, Bytes: 1, Start: -1}, "incast: start -1ps is negative"},
		{Incast{Senders: two, Receiver: 3, Bytes: 1, Every: MaxTime}, "incast: every 8.64e+06s times 2 senders is over the limit of 8.64e+06s"},
		{Incast{Senders: make([]int32, MaxRanks+1), Bytes: 1}, "incast: senders are 131073, over the limit of 131072"},
		{Bursts{Src: 1, Dst: 1, Bytes: 1, Every: 1}, "bursts: dst 1 is the source too"},
		{Bursts{Src: 1, Dst: 2, Bytes: 1}, "bursts: every is missing"},
		{Bursts{Src: 1, Dst: 2, Bytes: 1, Every: us, Jitter: 2 * us}, "bursts: jitter 2us is more than every 1us"},
		{Long{Src: 1, Dst: 1}, "long: dst 1 is the source too"},
		{Long{Src: 1, Dst: 2, Start: sim.Never}, "long: start never is over the limit of 8.64e+06s"},
		{Explicit{Flows: []Flow{{Src: 1, Dst: 1, Bytes: 1}}}, "flows: flow 0 goes from endpoint 1 to itself"},
		{Explicit{Flows: []Flow{{Src: -1, Dst: 1, Bytes: 1}}}, "flows: flow 0 goes from -1 to 1, which are no endpoints"},
		{Explicit{Flows: []Flow{{Src: 1, Dst: 2}}}, "flows: flow 0 has no bytes and is not endless"},
		{Explicit{Flows: []Flow{{Src: 1, Dst: 2, Bytes: -1}}}, "flows: flow 0 has -1 bytes: 0 to 1125899906842624 are possible"},
		{Explicit{Flows: []Flow{{Src: 1, Dst: 2, Bytes: 1, Start: -1}}}, "flows: flow 0 starts at -1ps: 0 to 8.64e+06s are possible"},
		{Explicit{Flows: []Flow{{Src: 1, Dst: 2, Bytes: 1, After: []int32{0}}}}, "flows: flow 0 waits for itself, over flow 0"},
		{Explicit{Flows: []Flow{{Src: 1, Dst: 2, Bytes: 1, After: []int32{4}}}}, "flows: flow 0 waits for flow 4, which does not exist"},
		{Explicit{Flows: []Flow{{Src: 1, Dst: 2, Bytes: 1, After: []int32{1}}, {Src: 1, Dst: 2, Endless: true}}}, "flows: flow 0 waits for flow 1, which is endless"},
		{Permutation{Endpoints: []int32{1}, Bytes: 1}, "permutation: endpoints are 1, fewer than 2"},
		{Permutation{Endpoints: two, Bytes: 1, Rounds: MaxFlows}, "permutation: 8388608 flows are over the limit of 4194304"},
		{
			Permutation{Endpoints: []int32{1, 2, 13}, Bytes: 1, Apart: leaf},
			"permutation: endpoints are impossible to pair: 2 of 3 stand together with endpoint 1, more than half",
		},
		{AllToAll{Endpoints: two, Bytes: 1, Rounds: 1 << 22}, "all-to-all: 8388608 flows are over the limit of 4194304"},
		{AllToAll{Endpoints: two, Bytes: 1, Window: -1}, "all-to-all: window -1 is less than 0"},
		{AllReduceRing{Ranks: two, Bytes: 3, Chunks: 2}, "all-reduce-ring: bytes 3 is less than 4"},
		{AllReduceRing{Ranks: two, Bytes: 1 << 40, Chunks: 1 << 16, Rounds: 1 << 20}, "all-reduce-ring: 274877906944 flows are over the limit of 4194304"},
		{AllReduceTree{Ranks: two, Chunks: 2, Bytes: 1}, "all-reduce-tree: bytes 1 is less than 2"},
		{poisson(func(p *Poisson) { p.CDF = nil }), "poisson: CDF is missing"},
		{poisson(func(p *Poisson) { p.Rate = 0 }), "poisson: rate 0bps is not positive"},
		{poisson(func(p *Poisson) { p.LoadPPM = 0 }), "poisson: load in ppm 0 is less than 1"},
		{poisson(func(p *Poisson) { p.Dests = []int32{2} }), "poisson: dests have nobody to whom endpoint 2 could send"},
		{poisson(func(p *Poisson) { p.Apart = leaf }), "poisson: dests have nobody to whom endpoint 1 could send"},
		{poisson(func(p *Poisson) { p.Rate, p.LoadPPM = 1, 1 }), "poisson: load in ppm 1 of 1bps makes less than a flow in 8.64e+06s"},
	} {
		s, err := c.w.Stream(rnd())
		if s != nil || err == nil || err.Error() != c.want {
			t.Errorf("%.80v: %v, want %s", c.w, err, c.want)
		}
		if v := c.w.Validate(); fmt.Sprint(v) != fmt.Sprint(err) {
			t.Errorf("%.80v: Validate says %v, Stream %v", c.w, v, err)
		}
	}
}

func TestOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(rt, "n")
		rank := rapid.Permutation(seq(n)).Draw(rt, "rank") // waits only for lower ranks
		flows := make([]Flow, n)
		for i := range flows {
			flows[i] = Flow{Src: int32(i), Bytes: 1, Start: sim.Time(rapid.IntRange(0, 5).Draw(rt, "start"))}
			for range rapid.IntRange(0, 2).Draw(rt, "waits") {
				if a := rapid.IntRange(0, n-1).Draw(rt, "for"); rank[a] < rank[i] {
					flows[i].After = append(flows[i].After, int32(a))
				}
			}
		}
		out, err := Order(flows)
		if err != nil {
			rt.Fatal(err)
		}
		out = takeFrom(t, &List{Flows: out}, n+1)
		if len(out) != n {
			rt.Fatalf("%d of %d", len(out), n)
		}
		for _, f := range out {
			var was []int32
			for _, a := range f.After {
				was = append(was, out[a].Src)
			}
			if !slices.Equal(was, flows[f.Src].After) {
				rt.Fatalf("flow %d waits for %v, not %v", f.Src, was, flows[f.Src].After)
			}
		}
	})
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func TestMerge(t *testing.T) {
	ring := AllReduceRing{Ranks: []int32{1, 2}, Bytes: 4, Start: 2 * us}
	stream := func(w Workload) Stream {
		s, err := w.Stream(rnd())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	burst := Bursts{Src: 8, Dst: 9, Bytes: 7, Every: us, Count: 4, As: Flow{QP: 1}}
	m := Merge(stream(burst), stream(ring), Merge(stream(ring), &List{}), stream(Long{Src: 3, Dst: 4}))
	want(t, takeFrom(t, m, 99),
		"8>9 7B at 0ps qp 1",
		"3>4 0B at 0ps endless",
		"8>9 7B at 1us qp 1",
		"8>9 7B at 2us qp 1",
		"1>2 2B at 2us qp 2", "2>1 2B at 2us qp 3", "1>2 2B at 0ps after [5] qp 2", "2>1 2B at 0ps after [4] qp 3",
		"1>2 2B at 2us qp 4", "2>1 2B at 2us qp 5", "1>2 2B at 0ps after [9] qp 4", "2>1 2B at 0ps after [8] qp 5",
		"8>9 7B at 3us qp 1",
	)
	// One that never ends, and one that fails.
	burst.Count = 0
	bad := Reader{Find: byNumber}.HPCC(strings.NewReader("2\n1 2 3 100 5 0\nx"), "flow.txt")
	m = Merge(stream(burst), bad)
	n := 0
	for {
		if _, ok := m.Next(); !ok {
			break
		}
		n++
	}
	if m.Err() == nil || m.Finite() || n > 2 {
		t.Error(n, m.Err(), m.Finite())
	}
}

func TestThenAndCollect(t *testing.T) {
	first := []Flow{{ID: 0, Src: 1, Dst: 2, Bytes: 3}, {ID: 1, Src: 1, Dst: 2, Endless: true}, {ID: 2, Src: 3, Dst: 2, Bytes: 3}}
	second := []Flow{{ID: 0, Src: 5, Dst: 6, Bytes: 3, Start: us}, {ID: 1, Src: 6, Dst: 7, Bytes: 3, After: []int32{0}}}
	flows := takeFrom(t, &List{Flows: Then(first, second)}, 99)
	want(t, flows, "1>2 3B at 0ps", "1>2 0B at 0ps endless", "3>2 3B at 0ps", "5>6 3B at 1us after [0 2]", "6>7 3B at 0ps after [3]")
	if _, err := Collect(&List{Flows: flows}, 4); err == nil || err.Error() != "more than 4 flows" {
		t.Error(err)
	}
	if got, err := Collect(&List{Flows: flows}, 5); err != nil || len(got) != 5 {
		t.Error(got, err)
	}
}

// byNumber takes a field for an endpoint.
func byNumber(src, dst string) (from, to int32, err error) {
	if _, err := fmt.Sscan(src, &from); err != nil {
		return 0, 0, fmt.Errorf("%q is no host", src)
	}
	if _, err := fmt.Sscan(dst, &to); err != nil {
		return 0, 0, fmt.Errorf("%q is no host", dst)
	}
	if from == to {
		return 0, 0, fmt.Errorf("host %d sends to itself", from)
	}
	return from, to, nil
}
