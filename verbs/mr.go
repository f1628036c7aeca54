package verbs

import (
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
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
	pd     *PD
	region *mem.Region
	buf    []byte
	held   *Memory // the Alloc'ed memory that buf lies in
	dead   atomic.Bool
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
	base := cfg.IOVA
	if base == 0 && cfg.Access&ib.ZeroBased == 0 {
		base = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(cfg.Buf))))
	}
	held := mappings.hold(cfg.Buf)
	if !mapped(cfg.Buf) {
		held.drop()
		return nil, errorf(ErrInvalid, "register MR: the %d bytes at 0x%x are not mapped; were they closed?", len(cfg.Buf), base)
	}
	m := &MR{pd: p, buf: cfg.Buf, held: held}
	err := p.dev.do("register MR", func(clock.Time) error {
		r, err := p.dev.adapter.RegisterMR(p.pd, cfg.Buf, base, cfg.Access)
		m.region = r
		return err
	})
	if err != nil {
		held.drop()
		return nil, err
	}
	p.dev.regions.add(m)
	p.dev.adopt(m)
	return m, nil
}

// LKey returns the key for local scatter/gather elements.
func (m *MR) LKey() ib.LKey { return m.region.LKey }

// RKey returns the key that a peer needs. It cannot be guessed.
func (m *MR) RKey() ib.RKey { return m.region.RKey }

// Addr returns the address of the first byte as work requests and peers name
// it.
func (m *MR) Addr() uint64 { return m.region.Base }

// Len returns the length in bytes.
func (m *MR) Len() int { return int(m.region.Len) }

// Bytes returns the registered memory.
func (m *MR) Bytes() []byte { return m.buf }

// Access returns the access flags.
func (m *MR) Access() ib.Access { return m.region.Access }

// SGE returns a scatter/gather list of one element: n bytes from byte off on.
// The range is not checked here; a list that leaves the region ends its work
// request with LOC_PROT_ERR, and one that is longer than a message can be, or
// of negative length, is refused when it is posted to send. The list can live on
// the caller's stack.
func (m *MR) SGE(off, n int) []ib.SGE {
	// What does not fit into an element must not become a short one.
	length := uint32(min(uint64(n), math.MaxUint32))
	return []ib.SGE{{Addr: m.region.Base + uint64(off), Length: length, LKey: m.region.LKey}}
}

// Remote returns the place of byte off, for a peer to READ, WRITE or change.
func (m *MR) Remote(off int) ib.Remote {
	return ib.Remote{Addr: m.region.Base + uint64(off), RKey: m.region.RKey}
}

// Close deregisters the region: from then on its keys open nothing and the
// device does not touch its memory. Work requests that still name it fail.
func (m *MR) Close() error {
	dev := m.pd.dev
	did, err := dev.release(m, &m.dead, func(clock.Time) error { return dev.adapter.DeregisterMR(m.region) })
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
	m.pd.dev.regions.remove(m)
	m.held.drop()
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
	r.byKey[m.region.LKey] = m
}

// remove returns when nobody reads the region's bytes any more.
func (r *regions) remove(m *MR) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byKey, m.region.LKey)
}

// bytes returns what sge refers to, if its key is of this domain and the range
// inside the region. The caller holds mu for reading.
func (r *regions) bytes(pd mem.PD, sge ib.SGE) ([]byte, bool) {
	m := r.byKey[sge.LKey]
	if m == nil || m.region.PD != pd {
		return nil, false
	}
	off := sge.Addr - m.region.Base
	if off > m.region.Len || uint64(sge.Length) > m.region.Len-off {
		return nil, false
	}
	return m.buf[off : off+uint64(sge.Length)], true
}
