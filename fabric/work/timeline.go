package work

import "github.com/verbena-rdma/verbena/fabric/sim"

// timeline is a heap of somebodies by instant; at one instant the lower comes
// first.
type timeline struct {
	at   []sim.Time
	who  []int32
	last sim.Time // of the last pop
}

func (t *timeline) before(i, j int) bool {
	return t.at[i] < t.at[j] || t.at[i] == t.at[j] && t.who[i] < t.who[j]
}

func (t *timeline) swap(i, j int) {
	t.at[i], t.at[j] = t.at[j], t.at[i]
	t.who[i], t.who[j] = t.who[j], t.who[i]
}

func (t *timeline) push(at sim.Time, who int32) {
	t.at = append(t.at, at)
	t.who = append(t.who, who)
	for i := len(t.at) - 1; i > 0 && t.before(i, (i-1)/2); i = (i - 1) / 2 {
		t.swap(i, (i-1)/2)
	}
}

func (t *timeline) pop() (int32, bool) {
	n := len(t.at)
	if n == 0 {
		return 0, false
	}
	who := t.who[0]
	t.last = t.at[0]
	t.swap(0, n-1)
	t.at, t.who = t.at[:n-1], t.who[:n-1]
	t.sift(0)
	return who, true
}

// move gives the first a later instant.
func (t *timeline) move(at sim.Time) {
	t.last = t.at[0]
	t.at[0] = at
	t.sift(0)
}

func (t *timeline) sift(i int) {
	for n := len(t.at); ; {
		c := 2*i + 1
		if c >= n {
			return
		}
		if c+1 < n && t.before(c+1, c) {
			c++
		}
		if !t.before(c, i) {
			return
		}
		t.swap(i, c)
		i = c
	}
}
