package bench

import (
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rnic"
	"github.com/verbena-rdma/verbena/wire/crc"
)

// copyCRC copies 4 KiB pieces of a region into a staging buffer and computes
// their CRC-32: fused, or hash/crc32 and then copy.
type copyCRC struct {
	idle
	fused bool
	sum   uint32 // so that nothing is optimised away
}

const (
	pieceBytes   = 4096
	stagingBytes = 64 << 10
)

func (c *copyCRC) slot(d time.Duration) (s Sample, err error) {
	src, dst := make([]byte, regionBytes), make([]byte, stagingBytes)
	m := newMeter(d)
	for n := uint64(0); !m.tick(n, &s); n += regionBytes / pieceBytes {
		for off := 0; off < regionBytes; off += pieceBytes {
			from, to := src[off:off+pieceBytes], dst[off%stagingBytes:][:pieceBytes]
			if c.fused {
				c.sum ^= crc.Copy(to, from, 0)
			} else {
				c.sum ^= crc32.ChecksumIEEE(from)
				copy(to, from)
			}
		}
	}
	s.Bytes = s.Messages * pieceBytes
	return s, nil
}

// loop is two adapters in one goroutine whose runs go from one to the other
// without a kernel: what the protocol, the copies and the CRCs cost alone.
type loop struct {
	idle
	size int
	a, b loopEnd
	run  frame.Run
}

type loopEnd struct {
	*rnic.Adapter
	addr netip.Addr
	cq   *rnic.CQ
	qp   *rnic.QP
	base uint64
	key  ib.RKey
}

func newLoop(s *Spec) (end, error) {
	l := &loop{size: s.Size, run: frame.Run{Buf: make([]byte, 1<<16)}}
	l.a.addr, l.b.addr = netip.AddrFrom4([4]byte{10, 0, 0, 1}), netip.AddrFrom4([4]byte{10, 0, 0, 2})
	err := errors.Join(l.a.open(), l.b.open())
	if err == nil {
		mtu := ib.MTUFor(s.MTU)
		err = errors.Join(l.a.connect(&l.b, mtu), l.b.connect(&l.a, mtu))
	}
	return l, err
}

func (e *loopEnd) open() (err error) {
	e.Adapter, err = rnic.New(rnic.Config{
		Name: "loop", GIDs: []rnic.GIDEntry{{GID: ib.GIDFromAddr(e.addr), Type: ib.GIDTypeRoCEv2}},
		Wire: rnic.WireCaps{MTU: 9000, Segments: frame.MaxSegments, RunBytes: 65507, Idents: true},
		Rand: rand.Uint32,
	})
	if err != nil {
		return err
	}
	pd, err := e.AllocPD()
	if err != nil {
		return err
	}
	if e.cq, err = e.CreateCQ(64); err != nil {
		return err
	}
	r, err := e.RegisterMR(pd, make([]byte, regionBytes), 0, ib.LocalWrite|ib.RemoteAll)
	if err != nil {
		return err
	}
	e.base, e.key = r.Base, r.RKey
	e.qp, err = e.CreateQP(0, rnic.QPConfig{Type: ib.RC, PD: pd, SendCQ: e.cq, RecvCQ: e.cq, Cap: ib.QPCap{MaxSendWR: 32, MaxRecvWR: 1}})
	return err
}

func (e *loopEnd) connect(peer *loopEnd, mtu ib.MTU) error {
	attrs := []ib.QPAttr{
		{
			Mask:  ib.AttrState | ib.AttrPKeyIndex | ib.AttrPort | ib.AttrAccess,
			State: ib.Init, Port: 1, Access: ib.RemoteAll,
		},
		{
			Mask:  ib.AttrState | ib.AttrAV | ib.AttrPathMTU | ib.AttrDestQPN | ib.AttrRQPSN | ib.AttrMaxDestRdAtomic | ib.AttrMinRNRTimer,
			State: ib.RTR, AV: ib.AV{DGID: ib.GIDFromAddr(peer.addr)}, PathMTU: mtu, DestQPN: peer.qp.Number(), MaxDestRdAtomic: 16, MinRNRTimer: 1,
		},
		{
			Mask:  ib.AttrState | ib.AttrSQPSN | ib.AttrTimeout | ib.AttrRetryCnt | ib.AttrRNRRetry | ib.AttrMaxRdAtomic,
			State: ib.RTS, TimeoutExp: 14, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: 16,
		},
	}
	for i := range attrs {
		if err := e.ModifyQP(0, e.qp, &attrs[i]); err != nil {
			return err
		}
	}
	return nil
}

// step moves one run from e to peer.
func (l *loop) step(from, to *loopEnd) bool {
	from.Advance(0)
	l.run.Reset()
	if !from.Egress(0, &l.run) {
		return false
	}
	r := &l.run
	rx := frame.Rx{Data: r.Buf[:r.N], Src: r.Src, Dst: r.Dst, SrcPort: r.SrcPort, TOS: r.TOS, TTL: r.TTL}
	if r.Segs > 1 {
		rx.Seg = r.Seg
	}
	to.Ingress(0, &rx)
	return true
}

func (l *loop) slot(d time.Duration) (s Sample, err error) {
	batch := max(1, min(16, regionBytes/l.size))
	wrs, wcs := make([]ib.SendWR, batch), make([]ib.WC, batch)
	for i := range wrs {
		off := uint64(i * l.size)
		wrs[i] = ib.SendWR{
			Op: ib.Write, Flags: ib.Signaled, SGL: []ib.SGE{{Addr: l.a.base + off, Length: uint32(l.size), LKey: ib.LKey(l.a.key)}},
			Remote: ib.Remote{Addr: l.b.base + off, RKey: l.b.key},
		}
	}
	m := newMeter(d)
	for n := uint64(0); !m.tick(n, &s); n += uint64(batch) {
		if _, err := l.a.qp.Post(wrs, nil); err != nil {
			return s, err
		}
		for done := 0; done < batch; {
			if !l.step(&l.a, &l.b) && !l.step(&l.b, &l.a) {
				if done += l.a.cq.Poll(wcs); done < batch {
					return s, errors.New("the adapters have nothing more to say, but not all is complete")
				}
				break
			}
			k := l.a.cq.Poll(wcs)
			if err := check(wcs[:k]); err != nil {
				return s, err
			}
			done += k
		}
	}
	s.Bytes = s.Messages * uint64(l.size)
	return s, nil
}
