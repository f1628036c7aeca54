package mem

// The shards of a device have a table each, over one store of regions and
// windows. What control calls change, they change while nobody uses any of the
// tables: registering, and making and freeing windows. Between those, all tables
// may be read at the same time, each by its own owner.
//
// Windows are the exception: work requests bind and unbind them, and any shard's
// peers may come through those of type 1. So they are kept apart and behind a
// lock, and what a bound window opens is never changed: a bind or unbind puts
// another Region in its place. A write through a window asks again, with the
// lock, whether it is still that, and so does a read, which copies with the lock;
// so once a bind has completed, nothing is written or read by what was bound
// before. A packet that leaves later has what the memory held before the bind.

// Locker is a lock, as sync.Mutex is one.
type Locker interface {
	Lock()
	Unlock()
}

// Share returns another table over the same regions and windows, for another
// shard. The first Share, which gives the lock, comes before any window.
func (t *Table) Share(lock Locker) *Table {
	if t.lock == nil {
		t.lock = lock
		t.wins = &keys{}
		t.tables = []*Table{t}
	}
	o := &Table{common: t.common}
	t.tables = append(t.tables, o)
	return o
}

// window returns the region of a window's key, or nil.
func (t *Table) window(key uint32) *Region {
	t.lock.Lock()
	r := t.wins.find(key)
	t.lock.Unlock()
	return r
}

// forgetLast forgets what the last look-ups have found.
func (t *Table) forgetLast() {
	t.last = nil
	for _, o := range t.tables {
		o.last = nil
	}
}

// renew gives a window another region to change, where others may still use the
// present one, and reports whether it did.
func (t *Table) renew(w *Window) bool {
	if t.lock == nil {
		return false
	}
	r := *w.r
	w.r = &r
	return true
}

// enter takes the lock of a window's region, if it has one.
func (r *Region) enter() bool {
	l := r.win.lock
	if l == nil {
		return false
	}
	l.Lock()
	return true
}

func (r *Region) exit() { r.win.lock.Unlock() }

// current says whether the window still opens what this region says. With the
// lock.
func (r *Region) current() Fault {
	if r.win.r != r {
		return FaultKey
	}
	return FaultNone
}
