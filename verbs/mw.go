package verbs

import (
	"sync/atomic"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/rnic"
)

// MWType is the type of a memory window, with libibverbs' numbers.
type MWType = rnic.MWType

// The types. [Device.MWKind] says what those of type 2 are.
const (
	MWType1 = rnic.MWType1
	MWType2 = rnic.MWType2
)

// MW is a memory window: rights to a part of a region, for peers, that work
// requests give and take back without a control call.
//
// A window opens nothing until a BindMW request has bound it, and then what it
// says under the key that it says. One of type 1 is for the peers of all queue
// pairs of its domain and is bound anew at any time; binding length 0 unbinds it.
// One of type 2 is for the peer of the queue pair that has bound it; it is
// unbound by LocalInv, or by a SendInv of that peer, before it is bound again.
//
// Region, window and queue pair must be of one domain, the region must allow
// [ib.MWBind]; else the request completes with MW_BIND_ERR. A region with bound
// windows is neither closed nor re-registered.
type MW struct {
	pd   *PD
	w    *mem.Window
	base ib.RKey // the key without its tag
	tag  atomic.Uint32
	dead atomic.Bool
}

// AllocMW makes a memory window. The error matches ErrLimit when there are too
// many.
func (p *PD) AllocMW(t MWType) (*MW, error) {
	if err := p.usable("allocate MW"); err != nil {
		return nil, err
	}
	m := &MW{pd: p}
	d := p.dev
	err := d.do("allocate MW", func(clock.Time) error {
		w, err := d.adapter.AllocMW(p.pd, t)
		if err == nil {
			m.w, m.base = w, w.RKey()&^0xFF
			m.tag.Store(uint32(w.RKey() & 0xFF))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	d.adopt(m)
	return m, nil
}

// MWKind returns what windows of type 2 are: 2A or 2B (see [Config]).
func (d *Device) MWKind() mem.WindowKind { return d.adapter.WindowKind() }

// Key returns the window's key with tag as its lowest 8 bits: what a bind may
// choose.
func (m *MW) Key(tag uint8) ib.RKey { return m.base | ib.RKey(tag) }

// RKey returns the key under which the window was last bound, 0 after Close.
func (m *MW) RKey() (k ib.RKey) {
	d := m.pd.dev
	_ = d.do("query MW", func(clock.Time) error {
		if !m.dead.Load() {
			k = m.w.RKey()
		}
		return nil
	})
	return k
}

// BindConfig says what a window is to open.
type BindConfig struct {
	MR     *MR
	Off    int // first byte, in the region
	Len    int // bytes; 0 unbinds a window of type 1
	Access ib.Access
	ID     uint64       // of the work request
	Flags  ib.SendFlags // Signaled, Fence
}

// BindMW posts a request that binds a window, and returns the key that opens it
// once the request has completed: another one than before. What is posted later
// is executed after the bind. The errors are those of [QP.PostSend].
//
// It is a convenience: a BindMW request posted by [QP.PostSend] chooses the tag
// itself ([MW.Key]).
func (q *QP) BindMW(m *MW, c BindConfig) (ib.RKey, error) {
	b := ib.Bind{RKey: m.Key(uint8(m.tag.Add(1))), Len: uint64(c.Len), Access: c.Access}
	if c.MR != nil {
		b.LKey, b.Addr = c.MR.LKey(), c.MR.Addr()+uint64(c.Off)
	}
	if err := q.PostSend(ib.SendWR{ID: c.ID, Op: ib.BindMW, Flags: c.Flags, Bind: &b}); err != nil {
		return 0, err
	}
	return b.RKey, nil
}

// Close frees the window, bound or not: its key opens nothing any more.
func (m *MW) Close() error {
	d := m.pd.dev
	_, err := d.release(m, &m.dead, func(clock.Time) error { return d.adapter.DeallocMW(m.w) })
	return err
}

func (m *MW) kill() { m.dead.Store(true) }
