package swtch

import "math/bits"

const maxWeight = 1000

// minQuantum is what the class with the least weight may send in a round: not
// less than the greatest frame, so that every turn of a class sends something.
// Classes that have no weight given may have less, and then miss turns.
const minQuantum = 9216 + 256

// quanta sets what each class may send in a round, in the ratio of the weights:
// quantum bytes for weight 1 or, without one, enough for the least weight to send
// any frame.
func (f *portConf) quanta(quantum int) {
	if quantum > 0 {
		for i := range f.queue {
			f.quantum[i] = int32(max(1, f.queue[i].Weight) * quantum)
		}
		return
	}
	least := maxWeight
	given := false
	for i := range f.queue {
		if q := &f.queue[i]; !q.Strict && q.Weight > 0 {
			least, given = min(least, q.Weight), true
		}
	}
	if !given {
		least = 1
	}
	frame := minQuantum
	if f.mtu <= maxMTU {
		frame = max(frame, int(f.mtu))
	}
	// A multiple of the least weight keeps the ratios exact.
	frame = (frame + least - 1) / least * least
	for i := range f.queue {
		f.quantum[i] = int32(max(1, f.queue[i].Weight) * (frame / least))
	}
}

// pick returns the class that sends next, of those in ok, which is not empty.
// Strict classes go first, the highest of them. The others take turns by deficit
// round robin (SIGCOMM'95 Shreedhar and Varghese): a turn begins with a quantum
// more of deficit and ends when the next packet exceeds what is left. A class
// that is stopped by the neighbour keeps its deficit; one that runs empty loses
// it.
func (e *egress) pick(ok uint8) uint8 {
	if s := ok & e.strict; s != 0 {
		return uint8(bits.Len8(s)) - 1
	}
	if ok&(ok-1) == 0 {
		return lowest(ok) // alone: nothing to share
	}
	c := e.cur
	if ok&(1<<c) != 0 {
		if n := e.open(c).fifo.Front().Bytes; n <= e.deficit[c] {
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
		e.deficit[c] += e.conf.quantum[c]
		if n := e.open(c).fifo.Front().Bytes; n <= e.deficit[c] {
			e.deficit[c] -= n
			e.cur = c
			return c
		}
	}
}
