package mem

import (
	"errors"
	"fmt"

	"github.com/verbena-rdma/verbena/ib"
)

// Errors of registration; those returned wrap one of them and name the value.
var (
	ErrAccess = errors.New("invalid access flags")
	ErrRange  = errors.New("address range wraps at 2^64")
)

const (
	// quarantine is how many freed keys are remembered and not given out again,
	// besides the odds of 32 random bits: an old peer may still use them.
	quarantine = 1024
	// randTries bounds how often a key is drawn before the nearest free one is
	// taken: only a source that is not random comes to it.
	randTries = 32
)

// Table holds the regions and windows of one adapter and answers every access
// to memory. No two of them have keys with the same upper 24 bits: the lowest 8
// of a window's key are its user's to choose.
// It has one owner at a time and is not safe for concurrent use, but for what
// share.go says of the tables of shards.
type Table struct {
	*common
	last *Region // the region of the last successful look-up
}

// common is what the tables of one device have in common.
type common struct {
	rand    func() uint32
	regions keys
	wins    *keys // of windows: regions, unless there are several tables
	type2   int   // bound windows of type 2

	freed     []uint32 // ring of the last freed keys, grown to quarantine
	freedNext int

	lock   Locker // of what work requests change; nil for one table
	tables []*Table
}

// NewTable returns an empty table. rand supplies keys: unguessable for real
// adapters, seeded for simulated ones. It must not be nil.
func NewTable(rand func() uint32) *Table {
	t := &Table{common: &common{rand: rand}}
	t.wins = &t.regions
	return t
}

// Len returns the number of regions and windows.
func (t *Table) Len() int {
	if t.wins != &t.regions {
		return t.regions.n + t.wins.n
	}
	return t.regions.n
}

// Register adds a region over data, whose first byte work requests and peers
// name as address base; base need not be the address of data. With
// [ib.ZeroBased] the first byte is address 0 and base is ignored. The table
// keeps data alive until Deregister. A region may be empty.
//
// The error matches [ErrAccess] if access has undefined bits, or remote write
// or atomic access without local write (IBA vol.1 10.6.3), and [ErrRange] if
// the region would end beyond 2^64.
func (t *Table) Register(pd PD, data []byte, base uint64, access ib.Access) (*Region, error) {
	if data == nil {
		data = []byte{} // nil stands for phantom memory
	}
	return t.register(&Region{PD: pd, Access: access, Base: base, Len: uint64(len(data)), data: data})
}

// RegisterPhantom adds a region of n bytes that holds no data. The rest is as
// in Register.
func (t *Table) RegisterPhantom(pd PD, n, base uint64, access ib.Access) (*Region, error) {
	return t.register(&Region{PD: pd, Access: access, Base: base, Len: n})
}

func (t *Table) register(r *Region) (*Region, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	key := t.newKey()
	r.LKey, r.RKey = ib.LKey(key), ib.RKey(key)
	t.regions.insert(key, r)
	return r, nil
}

// check refuses a region that cannot be.
func (r *Region) check() error {
	if r.Access&ib.ZeroBased != 0 {
		r.Base = 0
	}
	if bad := r.Access.Undefined(); bad != 0 {
		return fmt.Errorf("register memory: access %v: bits 0x%x are undefined: %w", r.Access, uint32(bad), ErrAccess)
	}
	if need := r.Access & (ib.RemoteWrite | ib.RemoteAtomic); need != 0 && r.Access&ib.LocalWrite == 0 {
		return fmt.Errorf("register memory: access %v: %v needs LOCAL_WRITE: %w", r.Access, need, ErrAccess)
	}
	if r.Access&ib.RemotePersist != 0 {
		return fmt.Errorf("register memory: access %v: this memory is not persistent: %w", r.Access, ErrAccess)
	}
	if end := r.Base + r.Len; end < r.Base && end != 0 {
		return fmt.Errorf("register memory: %d bytes at 0x%x: at most %d fit there: %w",
			r.Len, r.Base, -r.Base, ErrRange)
	}
	return nil
}

// Reregister gives a region other memory, another domain or other rights, and
// keeps its keys: it returns what takes the place of r. The errors are those of
// Register; after one r is as it was. Windows that are bound to r are unbound.
func (t *Table) Reregister(r *Region, pd PD, data []byte, base uint64, access ib.Access) (*Region, error) {
	if r == nil || r.win != nil || t.regions.find(uint32(r.LKey)) != r {
		return nil, fmt.Errorf("re-register memory: it is not registered: %w", ErrRange)
	}
	if data == nil {
		data = []byte{}
	}
	n := &Region{LKey: r.LKey, RKey: r.RKey, PD: pd, Access: access, Base: base, Len: uint64(len(data)), data: data}
	if err := n.check(); err != nil {
		return nil, err
	}
	t.unbindAll(r)
	t.forgetLast()
	t.regions.replace(uint32(r.LKey), n)
	return n, nil
}

// Deregister removes a region: from now on its keys open nothing, and neither do
// those of windows that were bound to it. A region that is not in the table is
// ignored.
func (t *Table) Deregister(r *Region) {
	if r == nil || r.win != nil || t.regions.find(uint32(r.LKey)) != r {
		return
	}
	t.unbindAll(r)
	t.free(&t.regions, uint32(r.LKey))
}

// free removes a key and remembers it.
func (t *Table) free(from *keys, key uint32) {
	t.forgetLast()
	from.remove(key)
	if len(t.freed) < quarantine {
		t.freed = append(t.freed, key)
		return
	}
	t.freed[t.freedNext] = key
	t.freedNext = (t.freedNext + 1) % quarantine
}

// tagBits are the bits of a window's key that its user chooses.
const tagBits = 8

// newKey returns a key that is not 0 and whose upper 24 bits are neither in use
// nor in quarantine.
func (t *Table) newKey() uint32 {
	key := t.rand()
	for try := 0; !t.usable(key); try++ {
		if try < randTries {
			key = t.rand()
		} else {
			key += 1 << tagBits
		}
	}
	return key
}

func (t *Table) usable(key uint32) bool {
	if key>>tagBits == 0 || t.regions.findUpper(key) != nil || t.wins.findUpper(key) != nil {
		return false
	}
	for _, k := range t.freed {
		if k>>tagBits == key>>tagBits {
			return false
		}
	}
	return true
}

// lookup returns the region with this key, or nil.
func (t *Table) lookup(key uint32) *Region {
	if r := t.last; r != nil && uint32(r.LKey) == key {
		return r
	}
	r := t.regions.find(key)
	if r != nil {
		t.last = r
	} else if t.lock != nil {
		r = t.window(key)
	}
	return r
}
