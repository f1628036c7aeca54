package verbs

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/rnic"
	"github.com/verbena-rdma/verbena/verbs/faultplan"
)

// MRConfig describes a memory region.
type MRConfig struct {
	// Buf is the memory; it may be empty. The region keeps a reference, so a
	// slice of the Go heap stays valid until the region is closed.
	Buf    []byte
	Access ib.Access
	// IOVA is the address of the first byte as work requests and peers name it.
	// 0 means its real address; for addresses that count from 0, use
	// [ib.ZeroBased].
	IOVA uint64
}

// MR is a registered memory region.
type MR struct {
	dev  *Device
	num  uint32 // for snapshots; nothing follows from it
	now  atomic.Pointer[registration]
	mu   sync.Mutex // Reregister and Close
	dead atomic.Bool
}

// registration is what a region is at present.
type registration struct {
	pd     *PD
	region *mem.Region
	buf    []byte
	held   *Memory // the Alloc'ed memory that buf lies in
}

// RegisterMR registers buf under its real address.
func (p *PD) RegisterMR(buf []byte, access ib.Access) (*MR, error) {
	return p.Register(MRConfig{Buf: buf, Access: access})
}

// Register registers memory. Nothing is pinned and nothing needs privileges.
// The error matches ErrInvalid if the access flags contradict each other, the
// region would end beyond 2^64, or Buf is not memory of the process any more
// (where the system tells), ErrLimit if there are too many.
func (p *PD) Register(cfg MRConfig) (*MR, error) {
	if err := p.usable("register MR"); err != nil {
		return nil, err
	}
	if err := p.dev.faults.control(faultplan.RegMR); err != nil {
		return nil, fmt.Errorf("register MR: %w", err)
	}
	base := cfg.base()
	r := &registration{pd: p}
	if err := r.hold("register MR", cfg.Buf, base); err != nil {
		return nil, err
	}
	m := &MR{dev: p.dev, num: p.dev.mrNum.Add(1)}
	err := p.dev.do("register MR", func(clock.Time) (err error) {
		r.region, err = p.dev.adapter.RegisterMR(p.pd, cfg.Buf, base, cfg.Access)
		return err
	})
	if err != nil {
		r.held.drop()
		return nil, err
	}
	m.now.Store(r)
	p.dev.regions.add(m)
	p.dev.adopt(m)
	return m, nil
}

// base returns the address of the first byte as requests name it.
func (c *MRConfig) base() uint64 {
	if c.IOVA == 0 && c.Access&ib.ZeroBased == 0 {
		return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(c.Buf))))
	}
	return c.IOVA
}

// hold takes buf, which must be memory of the process.
func (r *registration) hold(what string, buf []byte, base uint64) error {
	r.buf, r.held = buf, mappings.hold(buf)
	if mapped(buf) {
		return nil
	}
	r.held.drop()
	return errorf(ErrInvalid, "%s: the %d bytes at 0x%x are not mapped; were they closed?", what, len(buf), base)
}

// MRChange says what of a region changes.
type MRChange uint8

// The changes, with libibverbs' numbers (ibv_rereg_mr_flags).
const (
	ChangeTranslation MRChange = 1 << 0 // Buf and IOVA
	ChangePD          MRChange = 1 << 1
	ChangeAccess      MRChange = 1 << 2
)

// Reregister changes what the mask names, from cfg and pd; the keys stay. pd is
// looked at with ChangePD only, and may be nil otherwise. A refused call leaves
// the region as it was; it matches ErrBusy while windows are bound to it. Work
// requests that are under way meanwhile may meet either memory.
func (m *MR) Reregister(what MRChange, pd *PD, cfg MRConfig) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.now.Load()
	if m.dead.Load() {
		return errorf(ErrClosed, "re-register MR 0x%x: it is closed", uint32(old.region.LKey))
	}
	if bad := what &^ (ChangeTranslation | ChangePD | ChangeAccess); bad != 0 || what == 0 {
		return errorf(ErrInvalid, "re-register MR 0x%x: changes 0x%x, can be of 0x%x", uint32(old.region.LKey), uint8(what),
			uint8(ChangeTranslation|ChangePD|ChangeAccess))
	}
	next := *old
	c := rnic.MRChange{Rights: what&ChangeAccess != 0, Access: cfg.Access}
	if what&ChangePD != 0 {
		if pd == nil || pd.dev != m.dev {
			return errorf(ErrInvalid, "re-register MR 0x%x: the PD is missing or of another device", uint32(old.region.LKey))
		}
		if err := pd.usable("re-register MR"); err != nil {
			return err
		}
		next.pd, c.NewPD, c.PD = pd, true, pd.pd
	}
	if what&ChangeTranslation != 0 {
		if what&ChangeAccess == 0 {
			cfg.Access = old.region.Access
		}
		c.Move, c.Data, c.Base = true, cfg.Buf, cfg.base()
		if err := next.hold("re-register MR", cfg.Buf, c.Base); err != nil {
			return err
		}
	}
	err := m.dev.do("re-register MR", func(clock.Time) (err error) {
		next.region, err = m.dev.adapter.ReregisterMR(old.region, &c)
		if err == nil {
			m.now.Store(&next)
		}
		return err
	})
	drop := old.held // what the region no longer lies in
	if err != nil {
		drop = next.held
	}
	if c.Move {
		m.dev.regions.quiesce()
		drop.drop()
	}
	return err
}

func (m *MR) reg() *mem.Region { return m.now.Load().region }

// PD returns the protection domain.
func (m *MR) PD() *PD { return m.now.Load().pd }

// LKey returns the key for local scatter/gather elements.
func (m *MR) LKey() ib.LKey { return m.reg().LKey }

// RKey returns the key that a peer needs. It cannot be guessed.
func (m *MR) RKey() ib.RKey { return m.reg().RKey }

// Addr returns the address of the first byte as work requests and peers name
// it.
func (m *MR) Addr() uint64 { return m.reg().Base }

// Len returns the length in bytes.
func (m *MR) Len() int { return int(m.reg().Len) }

// Bytes returns the registered memory.
func (m *MR) Bytes() []byte { return m.now.Load().buf }

// Access returns the access flags.
func (m *MR) Access() ib.Access { return m.reg().Access }

// SGE returns a scatter/gather list of one element: n bytes from byte off on.
// The range is not checked here; a list that leaves the region ends its work
// request with LOC_PROT_ERR, and one that is longer than a message can be, or
// of negative length, is refused when it is posted to send. The list can live on
// the caller's stack.
func (m *MR) SGE(off, n int) []ib.SGE {
	return []ib.SGE{m.element(off, n)} // small enough to be inlined, also under the race detector
}

func (m *MR) element(off, n int) ib.SGE {
	// What does not fit into an element must not become a short one.
	length := uint32(min(uint64(n), math.MaxUint32))
	r := m.reg()
	return ib.SGE{Addr: r.Base + uint64(off), Length: length, LKey: r.LKey}
}

// Remote returns the place of byte off, for a peer to READ, WRITE or change.
func (m *MR) Remote(off int) ib.Remote {
	r := m.reg()
	return ib.Remote{Addr: r.Base + uint64(off), RKey: r.RKey}
}

// Close deregisters the region: from then on its keys open nothing and the
// device does not touch its memory. Work requests that still name it fail. It
// matches ErrBusy while memory windows are bound to the region.
func (m *MR) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	did, err := m.dev.release(m, &m.dead, func(clock.Time) error { return m.dev.adapter.DeregisterMR(m.reg()) })
	if did {
		m.forget()
	}
	return err
}

func (m *MR) kill() {
	if !m.dead.Swap(true) {
		m.forget()
	}
}

func (m *MR) forget() {
	m.dev.regions.remove(m)
	m.now.Load().held.drop()
}

// regions finds the bytes behind a key for those who post inline data. The
// adapter has its own table, but that belongs to whoever drives.
type regions struct {
	mu    sync.RWMutex
	byKey map[ib.LKey]*MR
}

func (r *regions) add(m *MR) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey == nil {
		r.byKey = make(map[ib.LKey]*MR)
	}
	r.byKey[m.LKey()] = m
}

// remove returns when nobody reads the region's bytes any more.
func (r *regions) remove(m *MR) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byKey, m.LKey())
}

// quiesce returns when nobody reads what a region was before.
func (r *regions) quiesce() {
	r.mu.Lock()
	defer r.mu.Unlock()
}

// bytes returns what sge refers to, if its key is of this domain and the range
// inside the region. The caller holds mu for reading.
func (r *regions) bytes(pd mem.PD, sge ib.SGE) ([]byte, bool) {
	m := r.byKey[sge.LKey]
	if m == nil {
		return nil, false
	}
	now := m.now.Load()
	if now.region.PD != pd {
		return nil, false
	}
	off := sge.Addr - now.region.Base
	if off > now.region.Len || uint64(sge.Length) > now.region.Len-off {
		return nil, false
	}
	return now.buf[off : off+uint64(sge.Length)], true
}
