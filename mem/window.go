package mem

import (
	"errors"
	"fmt"

	"github.com/verbena-rdma/verbena/ib"
)

// ErrWindow matches errors about memory windows.
var ErrWindow = errors.New("invalid memory window")

// WindowKind is the type of a memory window (IBA vol.1 10.6.7.2).
type WindowKind uint8

// The kinds. Since a bind asks for one domain of window, region and queue pair,
// those of type 2 let the same accesses through; what a device has is told to
// programs.
const (
	Window1  WindowKind = 1 // of a protection domain, bound anew at any time
	Window2A WindowKind = 2 // of the queue pair that has bound it
	Window2B WindowKind = 3 // of that queue pair and its protection domain
)

func (k WindowKind) String() string {
	switch k {
	case Window1:
		return "type 1"
	case Window2A:
		return "type 2A"
	case Window2B:
		return "type 2B"
	}
	return fmt.Sprintf("window kind %d", uint8(k))
}

// Window is a memory window: rights to a part of a region, for peers, that work
// requests give (Bind) and take back. Until it is bound it opens nothing.
//
//	type 1    unbound ◀──▶ bound                by Bind, of length 0 to unbind
//	type 2    unbound ──Bind──▶ bound ──Invalidate──▶ unbound
type Window struct {
	r      *Region // what it opens; no bytes and no rights while it is unbound
	kind   WindowKind
	pd     PD
	parent *Region // nil: unbound
	prev   *Window // among the windows of parent
	next   *Window
	lock   Locker // see share.go; nil for one table
}

// Kind returns the type.
func (w *Window) Kind() WindowKind { return w.kind }

// PD returns the protection domain.
func (w *Window) PD() PD { return w.pd }

// RKey returns the key as it was last bound; before that, one with the same
// upper 24 bits.
func (w *Window) RKey() ib.RKey { return w.r.RKey }

// Bound reports whether the window is bound.
func (w *Window) Bound() bool { return w.parent != nil }

// Windows returns how many windows are bound to the region.
func (r *Region) Windows() (n int) {
	for w := r.bound; w != nil; w = w.next {
		n++
	}
	return n
}

// AllocWindow adds a window that opens nothing yet.
func (t *Table) AllocWindow(pd PD, kind WindowKind) *Window {
	key := t.newKey()
	w := &Window{kind: kind, pd: pd, lock: t.lock}
	w.r = &Region{LKey: ib.LKey(key), RKey: ib.RKey(key), PD: pd, win: w}
	t.wins.insert(key, w.r)
	return w
}

// FreeWindow removes a window, bound or not. One that is not in the table is
// ignored.
func (t *Table) FreeWindow(w *Window) {
	if w == nil || t.wins.find(uint32(w.r.RKey)) != w.r {
		return
	}
	t.unbind(w)
	t.free(t.wins, uint32(w.r.RKey))
}

// admits says whether the peer of queue pair qpn may come through the window
// whose region this is.
func (r *Region) admits(qpn ib.QPN) Fault {
	switch {
	case !r.open:
		return FaultKey
	case r.win.kind != Window1 && r.qpn != qpn:
		return FaultQP
	}
	return FaultNone
}

// windowAccess is what a window may allow.
const windowAccess = ib.RemoteAll | ib.RemoteFlush | ib.ZeroBased

// Bind executes a bind for queue pair qpn of domain pd (IBA vol.1 10.6.7.2.1).
// The upper 24 bits of b.RKey name the window; from now on it is reached by
// b.RKey alone, be that another key than before or the same. Window, region and
// queue pair are of one domain. Length 0 unbinds a window of type 1. After a
// fault nothing has changed.
func (t *Table) Bind(pd PD, qpn ib.QPN, b *ib.Bind) Fault {
	if t.lock == nil {
		return t.bind(pd, qpn, b)
	}
	t.lock.Lock()
	f := t.bind(pd, qpn, b)
	t.lock.Unlock()
	return f
}

func (t *Table) bind(pd PD, qpn ib.QPN, b *ib.Bind) Fault {
	r := t.wins.findUpper(uint32(b.RKey))
	if r == nil || r.win == nil || b.RKey == 0 {
		return FaultKey
	}
	w := r.win
	switch {
	case w.pd != pd:
		return FaultPD
	case w.kind != Window1 && w.parent != nil:
		return FaultBound
	case w.kind != Window1 && b.Len == 0:
		return FaultRange
	case b.Access&^windowAccess != 0, w.kind == Window1 && b.Access&ib.ZeroBased != 0:
		return FaultAccess
	}
	var parent *Region
	if b.Len > 0 {
		parent = t.regions.find(uint32(b.LKey))
		if f := parent.binds(pd, b); f != FaultNone {
			return f
		}
	}
	t.unbind(w)
	if b.RKey != w.r.RKey {
		t.last = nil
		t.wins.remove(uint32(w.r.RKey))
		t.renew(w)
		w.r.LKey, w.r.RKey = ib.LKey(b.RKey), b.RKey
		t.wins.insert(uint32(b.RKey), w.r)
	}
	if parent == nil {
		return FaultNone
	}
	if t.renew(w) {
		t.wins.replace(uint32(b.RKey), w.r)
	}
	w.r.open, w.r.qpn = true, qpn
	w.r.Access, w.r.Base, w.r.Len = b.Access, b.Addr, b.Len
	if b.Access&ib.ZeroBased != 0 {
		w.r.Base = 0
	}
	if parent.data != nil {
		off := b.Addr - parent.Base
		w.r.data = parent.data[off : off+b.Len : off+b.Len]
	}
	w.parent = parent
	if w.next = parent.bound; w.next != nil {
		w.next.prev = w
	}
	parent.bound = w
	if w.kind != Window1 {
		t.type2++
	}
	return FaultNone
}

// binds says whether a window may be bound to the region.
func (r *Region) binds(pd PD, b *ib.Bind) Fault {
	switch {
	case r == nil || r.win != nil:
		return FaultKey
	case r.PD != pd:
		return FaultPD
	case r.Access&ib.MWBind == 0, r.Access&ib.ZeroBased != 0:
		return FaultAccess
	case b.Access&(ib.RemoteWrite|ib.RemoteAtomic) != 0 && r.Access&ib.LocalWrite == 0:
		return FaultAccess
	case !r.holds(b.Addr, b.Len):
		return FaultRange
	}
	return FaultNone
}

// Invalidate executes an invalidation, asked for by queue pair qpn of domain pd
// itself or by its peer: the bound window of type 2 with this very key opens
// nothing any more (IBA vol.1 10.6.7.2.4). Keys of regions and of windows of type
// 1 are not invalidated so: FaultAccess. After a fault nothing has changed.
func (t *Table) Invalidate(pd PD, qpn ib.QPN, key ib.RKey) Fault {
	if t.lock == nil {
		return t.invalidate(pd, qpn, key)
	}
	t.lock.Lock()
	f := t.invalidate(pd, qpn, key)
	t.lock.Unlock()
	return f
}

func (t *Table) invalidate(pd PD, qpn ib.QPN, key ib.RKey) Fault {
	r := t.wins.find(uint32(key))
	if r == nil {
		r = t.regions.find(uint32(key))
	}
	switch {
	case r == nil:
		return FaultKey
	case r.PD != pd:
		return FaultPD
	case r.win == nil || r.win.kind == Window1:
		return FaultAccess
	}
	if f := r.admits(qpn); f != FaultNone {
		return f
	}
	t.unbind(r.win)
	return FaultNone
}

// ForgetQP unbinds the windows of type 2 that queue pair qpn has bound: it ends,
// or begins anew.
func (t *Table) ForgetQP(qpn ib.QPN) {
	if t.lock == nil {
		t.forgetQP(qpn)
		return
	}
	t.lock.Lock()
	t.forgetQP(qpn)
	t.lock.Unlock()
}

func (t *Table) forgetQP(qpn ib.QPN) {
	slots := t.wins.slots
	for i := 0; i < len(slots) && t.type2 > 0; i++ {
		if r := slots[i].r; r != nil && r.win != nil && r.open && r.win.kind != Window1 && r.qpn == qpn {
			t.unbind(r.win)
		}
	}
}

// unbindAll unbinds the windows of a region.
func (t *Table) unbindAll(r *Region) {
	for r.bound != nil {
		t.unbind(r.bound)
	}
}

// unbind makes a window open nothing; its key stays.
func (t *Table) unbind(w *Window) {
	if w.parent == nil {
		return
	}
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		w.parent.bound = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	if w.kind != Window1 {
		t.type2--
	}
	w.parent, w.prev, w.next = nil, nil, nil
	if t.renew(w) {
		t.wins.replace(uint32(w.r.RKey), w.r)
	}
	w.r.open, w.r.qpn = false, 0
	w.r.Access, w.r.Base, w.r.Len, w.r.data = 0, 0, 0, nil
}
