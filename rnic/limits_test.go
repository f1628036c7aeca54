package rnic

import (
	"errors"
	"net/netip"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/ib"
)

// limitCheck tries a limit of n: reach must succeed and beyond, which is one
// more, must be refused with want.
type limitCheck struct {
	draw func(*rapid.T) int // nil: a small number of objects
	want error
	// make tries k objects, or one of size k, of the n that the limit grants.
	make func(h *host, k int) error
}

func each(k int, one func(i int) error) error {
	for i := range k {
		if err := one(i); err != nil {
			return err
		}
	}
	return nil
}

// sized tries one object of size k.
func (h *host) sized(c ib.QPCap) error {
	q, err := h.CreateQP(0, QPConfig{Type: ib.RC, PD: h.pd, SendCQ: h.cq, RecvCQ: h.cq, Cap: c})
	if err != nil {
		return err
	}
	return h.DestroyQP(0, q)
}

func groupAddr(i int) ib.GID {
	return ib.GIDFromAddr(netip.AddrFrom4([4]byte{239, 0, byte(i >> 8), byte(i)}))
}

// limitChecks has a row for each field of Limits.
var limitChecks = map[string]limitCheck{
	"MaxQP": {want: ErrLimit, make: func(h *host, k int) error {
		return each(k, func(int) error {
			_, err := h.CreateQP(0, QPConfig{Type: ib.UC, PD: h.pd, SendCQ: h.cq, RecvCQ: h.cq})
			return err
		})
	}},
	"MaxCQ": {want: ErrLimit, make: func(h *host, k int) error {
		return each(k-1, func(int) error { _, err := h.CreateCQ(1); return err })
	}},
	"MaxMR": {want: ErrLimit, make: func(h *host, k int) error {
		return each(k, func(int) error { _, err := h.RegisterMR(h.pd, nil, 0, 0); return err })
	}},
	"MaxMW": {want: ErrLimit, make: func(h *host, k int) error {
		return each(k, func(i int) error { _, err := h.AllocMW(h.pd, MWType(1+i%2)); return err })
	}},
	"MaxPD": {want: ErrLimit, make: func(h *host, k int) error {
		return each(k-1, func(int) error { _, err := h.AllocPD(); return err })
	}},
	"MaxAH": {want: ErrLimit, make: func(h *host, k int) error {
		return each(k, func(int) error { _, err := h.CreateAH(h.pd, &ib.AV{DGID: ib.GIDFromAddr(addrB)}); return err })
	}},
	"MaxSRQ": {want: ErrLimit, make: func(h *host, k int) error {
		return each(k, func(int) error { _, err := h.CreateSRQ(SRQConfig{PD: h.pd, MaxWR: 1}); return err })
	}},
	"MaxMcastGroup": {want: ErrLimit, make: func(h *host, k int) error {
		q := h.qp(ib.UD, nil)
		return each(k, func(i int) error { return h.AttachMcast(q, groupAddr(i)) })
	}},
	"MaxMcastQP": {want: ErrLimit, make: func(h *host, k int) error {
		return each(k, func(int) error { return h.AttachMcast(h.qp(ib.UD, nil), groupAddr(1)) })
	}},

	"MaxQPWR": {want: ErrInvalid, make: func(h *host, k int) error {
		return errors.Join(h.sized(ib.QPCap{MaxSendWR: k}), h.sized(ib.QPCap{MaxRecvWR: k}))
	}},
	"MaxSRQWR": {want: ErrInvalid, make: func(h *host, k int) error {
		s, err := h.CreateSRQ(SRQConfig{PD: h.pd, MaxWR: 1})
		if err != nil {
			return err
		}
		_, err = h.CreateSRQ(SRQConfig{PD: h.pd, MaxWR: k})
		return errors.Join(err, h.ModifySRQ(s, &ib.SRQAttr{Mask: ib.SRQMaxWR, MaxWR: k}))
	}},
	"MaxCQE": {want: ErrInvalid, make: func(h *host, k int) error {
		_, err := h.CreateCQ(k)
		return errors.Join(err, h.ResizeCQ(h.cq, k))
	}},
	"MaxSGE": {want: ErrInvalid, make: func(h *host, k int) error {
		_, err := h.CreateSRQ(SRQConfig{PD: h.pd, MaxSGE: k})
		return errors.Join(err, h.sized(ib.QPCap{MaxSendSGE: k}), h.sized(ib.QPCap{MaxRecvSGE: k}))
	}},
	"MaxInline": {want: ErrInvalid, make: func(h *host, k int) error { return h.sized(ib.QPCap{MaxInlineData: k}) }},
	"MaxRdAtomic": {
		draw: func(t *rapid.T) int { return rapid.IntRange(1, 254).Draw(t, "n") }, want: ErrInvalid,
		make: func(h *host, k int) error {
			q := h.qp(ib.RC, nil)
			h.modify(q, initAttr(ib.RC))
			a := rtrAttr(ib.RC, ib.GIDFromAddr(addrB), 0, 77, ib.MTU1024)
			a.MaxDestRdAtomic = uint8(k)
			if err := h.ModifyQP(0, q, &a); err != nil {
				return err
			}
			b := rtsAttr(ib.RC)
			b.MaxRdAtomic = uint8(k)
			return h.ModifyQP(0, q, &b)
		},
	},
	"MaxMRSize": {
		draw: func(t *rapid.T) int { return rapid.IntRange(1, 1<<20).Draw(t, "n") }, want: ErrInvalid,
		make: func(h *host, k int) error {
			r, err := h.RegisterMR(h.pd, make([]byte, 1), 0, 0)
			if err != nil {
				return err
			}
			_, err = h.ReregisterMR(r, &MRChange{Move: true, Data: make([]byte, k)})
			_, err2 := h.RegisterPhantomMR(h.pd, uint64(k), 0, 0)
			return errors.Join(err, err2)
		},
	},
}

// Every limit that an adapter tells is the one that it holds to: what it says
// can be had, and one more is refused, whatever the limit and with the others as
// they are. A field of Limits without a row here is a limit that nobody tries.
func TestEveryLimitIsReachedAndNotPassed(t *testing.T) {
	typ := reflect.TypeFor[Limits]()
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		c, ok := limitChecks[name]
		if !ok {
			t.Errorf("%s: nobody tries it", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				n := 0
				if c.draw != nil {
					n = c.draw(rt)
				} else {
					n = rapid.IntRange(1, 40).Draw(rt, "n")
				}
				made := func(k int) (int, error) {
					h := newHost(t, addrA, addrA6, nil)
					// Set once the usual objects are there: some are above a limit.
					f := reflect.ValueOf(&h.limits).Elem().FieldByName(name)
					if f.CanInt() {
						f.SetInt(int64(n))
					} else {
						f.SetUint(uint64(n))
					}
					told := reflect.ValueOf(h.Limits()).FieldByName(name)
					return int(told.Convert(reflect.TypeFor[int64]()).Int()), c.make(h, k)
				}
				told, err := made(n)
				if err != nil || told != n {
					rt.Fatalf("%d of %d, told %d: %v", n, n, told, err)
				}
				if _, err := made(n + 1); !errors.Is(err, c.want) {
					rt.Fatalf("%d of %d: %v, want %v", n+1, n, err, c.want)
				}
			})
		})
	}
	for name := range limitChecks {
		if _, ok := typ.FieldByName(name); !ok {
			t.Errorf("%s is no limit", name)
		}
	}
}

// The default limits can be had, where having them costs little.
func TestDefaultSizesCanBeHad(t *testing.T) {
	h := newHost(t, addrA, addrA6, nil)
	d := DefaultLimits()
	for name, k := range map[string]int{
		"MaxQPWR": d.MaxQPWR, "MaxSRQWR": d.MaxSRQWR, "MaxCQE": d.MaxCQE, "MaxSGE": d.MaxSGE, "MaxInline": d.MaxInline,
		"MaxRdAtomic": d.MaxRdAtomic, "MaxMcastGroup": d.MaxMcastGroup,
	} {
		if err := limitChecks[name].make(h, k); err != nil {
			t.Errorf("%s %d: %v", name, k, err)
		}
		if err := limitChecks[name].make(newHost(t, addrA, addrA6, nil), k+1); !errors.Is(err, limitChecks[name].want) {
			t.Errorf("%s %d: %v", name, k+1, err)
		}
	}
}
