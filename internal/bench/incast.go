package bench

import (
	"errors"
	"net/netip"
	"time"

	"github.com/verbena-rdma/verbena/ib"
)

// incast is many senders that write to one receiver: as many devices on
// addresses of their own at the near end, one device at the far end.
type incast struct {
	c       *child
	spec    *Spec
	senders []*host
	far     *host
	out     []int
}

const incastDepth = 4

func newIncast(c *child, s *Spec) *incast { return &incast{c: c, spec: s} }

// senderAddr returns the address of sender i.
func senderAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 1, byte(1 + i)}) }

func (in *incast) prepare() (o Offer, err error) {
	if !in.c.near {
		h := newHost(in.c, in.spec)
		h.timeoutExp = 0 // the usual one: here losses are the point
		in.far = &h
		return h.open(in.spec.Senders, incastDepth, 0)
	}
	in.out = make([]int, in.spec.Senders)
	for i := range in.spec.Senders {
		h := newHost(in.c, in.spec)
		h.key.addr, h.timeoutExp = senderAddr(i), 0
		in.senders = append(in.senders, &h)
		one, err := h.open(1, incastDepth, 0)
		if err != nil {
			return o, err
		}
		o.QPNs, o.PSNs = append(o.QPNs, one.QPNs...), append(o.PSNs, one.PSNs...)
	}
	return o, nil
}

func (in *incast) join(peer Offer) error {
	for i, h := range in.senders {
		if err := h.connect(0, &peer, i); err != nil {
			return err
		}
	}
	if in.far == nil {
		return nil
	}
	for i := range in.far.qps {
		if err := in.far.connectTo(i, &peer, i, senderAddr(i)); err != nil {
			return err
		}
	}
	return nil
}

func (in *incast) resent() uint64 {
	var n uint64
	for _, h := range in.senders {
		n += h.resent()
	}
	return n
}

func (in *incast) slot(d time.Duration) (sample Sample, err error) {
	before := in.resent()
	m := newMeter(d)
	var done uint64
	giveUp := time.Now().Add(d + patience/2)
	stopping := false
	for inFlight := 0; !stopping || inFlight > 0; {
		inFlight = 0
		for i, h := range in.senders {
			for !stopping && in.out[i] < incastDepth {
				wr := ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: h.mr.SGE(0, in.spec.Size), Remote: h.remote(i * in.spec.Size % regionBytes)}
				if err := h.qps[0].PostSend(wr); err != nil {
					return sample, err
				}
				in.out[i]++
			}
			n := h.cq.Poll(h.wcs[:])
			if err := check(h.wcs[:n]); err != nil {
				return sample, err
			}
			in.out[i] -= n
			inFlight += in.out[i]
			done += uint64(n)
		}
		if !stopping {
			stopping = m.tick(done, &sample)
		} else if time.Now().After(giveUp) {
			return sample, errors.New("no completion comes any more")
		}
	}
	sample.Bytes = sample.Messages * uint64(in.spec.Size)
	sample.Resent = in.resent() - before
	return sample, nil
}

func (in *incast) serve(h *halt) error { return in.far.progress(h) }

func (in *incast) close() error {
	var errs []error
	for _, h := range in.senders {
		errs = append(errs, h.close())
	}
	if in.far != nil {
		errs = append(errs, in.far.close())
	}
	return errors.Join(errs...)
}
