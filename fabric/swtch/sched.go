package swtch

import "math/bits"

const maxWeight = 1000

// minQuantum is the least that a class may send in a round: not less than the
// greatest frame, so that every visit of a class sends something.
const minQuantum = 9216 + 256

// quanta sets what each class may send in a round, in the ratio of the weights.
func (e *egress) quanta(c *PortConfig) {
	least := maxWeight
	for i := range c.Queue {
		if !c.Queue[i].Strict {
			least = min(least, max(1, c.Queue[i].Weight))
		}
	}
	frame := max(minQuantum, c.MTU)
	for i := range c.Queue {
		// Rounded up: weights of 3 and 7 are 9472 and 22102.
		e.quantum[i] = int32((max(1, c.Queue[i].Weight)*frame + least - 1) / least)
	}
}

// pick returns the class that sends next, of those in ok, which is not empty.
// Strict classes go first, the highest of them. The others take turns by deficit
// round robin (SIGCOMM'95 Shreedhar and Varghese): a turn begins with a quantum
// more of deficit and ends when the next packet exceeds what is left.
func (e *egress) pick(ok uint8) uint8 {
	if s := ok & e.strict; s != 0 {
		return uint8(bits.Len8(s)) - 1
	}
	if ok&(ok-1) == 0 {
		return lowest(ok) // alone: nothing to share
	}
	c := e.cur
	if ok&(1<<c) != 0 {
		if n := e.q[c].fifo.Front().Bytes; n <= e.deficit[c] {
			e.deficit[c] -= n
			return c
		}
	}
	for {
		m := ok &^ (2<<c - 1) // those after c
		if m == 0 {
			m = ok
		}
		c = lowest(m)
		e.deficit[c] += e.quantum[c]
		if n := e.q[c].fifo.Front().Bytes; n <= e.deficit[c] {
			e.deficit[c] -= n
			e.cur = c
			return c
		}
	}
}
