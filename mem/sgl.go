package mem

import "github.com/verbena-rdma/verbena/ib"

// Check tests every element of a scatter/gather list against its region
// without touching memory. Elements of length 0 are not looked up: their key and
// address mean nothing.
func (t *Table) Check(pd PD, sgl []ib.SGE, need ib.Access) Fault {
	for i := range sgl {
		if f := t.element(pd, &sgl[i], need); f != FaultNone {
			return f
		}
	}
	return FaultNone
}

// element checks one element.
func (t *Table) element(pd PD, e *ib.SGE, need ib.Access) Fault {
	if e.Length == 0 {
		return FaultNone
	}
	return t.lookup(uint32(e.LKey)).local(pd, e.Addr, uint64(e.Length), need)
}

// checkSpan checks the elements that n bytes from byte off on touch, each as a
// whole, and that the list is long enough.
func (t *Table) checkSpan(pd PD, sgl []ib.SGE, off, n uint64, need ib.Access) Fault {
	for i := range sgl {
		if n == 0 {
			break
		}
		have := uint64(sgl[i].Length)
		if off >= have {
			off -= have
			continue
		}
		if f := t.element(pd, &sgl[i], need); f != FaultNone {
			return f
		}
		n -= min(n, have-off)
		off = 0
	}
	if n > 0 {
		return FaultLength
	}
	return FaultNone
}

// Gather appends to frags references to the n bytes that start off bytes into
// the list, and returns the extended slice. It checks the elements that it
// touches, each as a whole; after a fault it has appended nothing. It allocates
// only if frags lacks capacity: len(sgl) is always enough.
func (t *Table) Gather(pd PD, sgl []ib.SGE, off uint64, n int, frags []Frag) ([]Frag, Fault) {
	if n <= 0 {
		return frags, FaultNone
	}
	start := len(frags)
	left := uint64(n)
	for i := range sgl {
		have := uint64(sgl[i].Length)
		if off >= have {
			off -= have
			continue
		}
		r := t.lookup(uint32(sgl[i].LKey))
		if f := r.local(pd, sgl[i].Addr, have, 0); f != FaultNone {
			return frags[:start], f
		}
		k := min(left, have-off)
		frags = append(frags, r.frag(sgl[i].Addr-r.Base+off, k))
		if left -= k; left == 0 {
			return frags, FaultNone
		}
		off = 0
	}
	return frags[:start], FaultLength
}

// Scatter copies src into the list from byte off on. n is the length when src
// is phantom (nil), and not looked at otherwise. It needs local write access.
// The elements that it touches are checked first: after a fault no byte has
// changed. The last bytes become visible last, as [Region.WriteAt] does it.
func (t *Table) Scatter(pd PD, sgl []ib.SGE, off uint64, src []byte, n int) Fault {
	if src != nil {
		n = len(src)
	}
	if n <= 0 {
		return FaultNone
	}
	if len(sgl) == 1 { // nearly always: one look-up does for both
		return t.scatterOne(pd, &sgl[0], off, src, uint64(n))
	}
	if f := t.checkSpan(pd, sgl, off, uint64(n), ib.LocalWrite); f != FaultNone || src == nil {
		return f
	}
	for i := range sgl {
		have := uint64(sgl[i].Length)
		if off >= have {
			off -= have
			continue
		}
		k := min(uint64(len(src)), have-off)
		r := t.lookup(uint32(sgl[i].LKey))
		r.write(sgl[i].Addr-r.Base+off, src[:k], k == uint64(len(src)))
		if src = src[k:]; len(src) == 0 {
			break
		}
		off = 0
	}
	return FaultNone
}

// scatterOne is Scatter to a list of one element, for n > 0.
func (t *Table) scatterOne(pd PD, e *ib.SGE, off uint64, src []byte, n uint64) Fault {
	have := uint64(e.Length)
	if off >= have {
		return FaultLength
	}
	r := t.lookup(uint32(e.LKey))
	if f := r.local(pd, e.Addr, have, ib.LocalWrite); f != FaultNone {
		return f
	}
	if n > have-off {
		return FaultLength
	}
	if src != nil {
		r.write(e.Addr-r.Base+off, src, true)
	}
	return FaultNone
}
