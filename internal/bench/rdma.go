package bench

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link/udp"
	"github.com/verbena-rdma/verbena/verbs"
)

// deviceKey tells the devices of a child apart.
type deviceKey struct {
	addr       netip.Addr
	noOffload  bool
	recvBuffer int
	packet     bool
}

// portOf gives each kind of device a UDP port of its own, the same at both ends.
func (c *child) portOf(k deviceKey) uint16 {
	p := c.port
	if k.noOffload {
		p++
	}
	if k.recvBuffer != 0 {
		p += 2
	}
	return uint16(p)
}

// device returns the child's device of a kind; it lives as long as the child.
func (c *child) device(k deviceKey) (*verbs.Device, error) {
	if d := c.devices[k]; d != nil {
		return d, nil
	}
	cfg := verbs.Config{Addr: k.addr, Port: c.portOf(k), RecvBuffer: k.recvBuffer}
	if k.packet {
		cfg.Ethernet, cfg.Port = true, 0 // its port is the one of RoCEv2
	}
	if k.noOffload {
		l, err := udp.Open(udp.Config{Addrs: []netip.Addr{k.addr}, Port: cfg.Port, NoOffload: true})
		if err != nil {
			return nil, err
		}
		cfg.Link = l
	}
	d, err := verbs.Open(cfg)
	if err != nil {
		if cfg.Link != nil {
			err = errors.Join(err, cfg.Link.Close())
		}
		return nil, err
	}
	c.devices[k] = d
	return d, nil
}

// regionBytes is the size of every memory region: it stays in the cache.
const regionBytes = 1 << 20

// longTimeoutExp is an ACK timeout of a quarter of a second: on a busy machine
// the other end may not run for longer than eight of the usual ones.
const longTimeoutExp = 16

// host is what all our subjects have at an end: queue pairs of one device, one
// completion queue, one region.
type host struct {
	c    *child
	spec *Spec
	key  deviceKey
	// timeoutExp is the local ACK timeout.
	timeoutExp uint8
	dev        *verbs.Device
	pd         *verbs.PD
	cq         *verbs.CQ
	mem        *verbs.Memory
	mr         *verbs.MR
	qps        []*verbs.QP
	psns       []ib.PSN
	far        ib.Remote // the other end's region
	wcs        [64]ib.WC
}

func newHost(c *child, s *Spec) host {
	return host{c: c, spec: s, key: deviceKey{c.addr, s.NoOffload, s.RecvBuffer, s.Packet}, timeoutExp: longTimeoutExp}
}

// open makes n queue pairs with queues of the given depths.
func (h *host) open(n, sends, recvs int) (o Offer, err error) {
	if h.dev, err = h.c.device(h.key); err != nil {
		return o, err
	}
	if h.mem, err = verbs.Alloc(regionBytes); err != nil {
		return o, err
	}
	h.pd = h.dev.AllocPD()
	if h.cq, err = h.dev.CreateCQ(verbs.CQConfig{Depth: n * (sends + recvs)}); err != nil {
		return o, err
	}
	if h.mr, err = h.pd.RegisterMR(h.mem.Bytes(), ib.LocalWrite|ib.RemoteAll); err != nil {
		return o, err
	}
	o.Base, o.RKey = h.mr.Addr(), uint32(h.mr.RKey())
	for range n {
		qp, err := h.pd.CreateQP(verbs.QPConfig{
			Type: ib.RC, SendCQ: h.cq, RecvCQ: h.cq,
			Cap: ib.QPCap{MaxSendWR: sends, MaxRecvWR: max(recvs, 1)},
		})
		if err != nil {
			return o, err
		}
		psn := ib.PSN(rand.Uint32()) & ib.PSNMask
		h.qps, h.psns = append(h.qps, qp), append(h.psns, psn)
		o.QPNs, o.PSNs = append(o.QPNs, uint32(qp.Num())), append(o.PSNs, uint32(psn))
	}
	return o, nil
}

// connect joins queue pair i to number j of the peer.
func (h *host) connect(i int, peer *Offer, j int) error {
	addr, err := netip.ParseAddr(peer.Addr)
	if err != nil {
		return err
	}
	return h.connectTo(i, peer, j, addr)
}

func (h *host) connectTo(i int, peer *Offer, j int, addr netip.Addr) error {
	row, err := h.dev.SelectGID(addr)
	if err != nil {
		return err
	}
	path := verbs.Path{
		DestQPN: ib.QPN(peer.QPNs[j]), PSN: ib.PSN(peer.PSNs[j]), LocalPSN: h.psns[i],
		GID: ib.GIDFromAddr(addr), GIDIndex: row, MTU: ib.MTUFor(h.spec.MTU), LateAck: true,
		TimeoutExp: h.timeoutExp,
	}
	h.far = ib.Remote{Addr: peer.Base, RKey: ib.RKey(peer.RKey)}
	qp := h.qps[i]
	return errors.Join(qp.ToInit(ib.RemoteAll|ib.LocalWrite), qp.ToRTR(path), qp.ToRTS(path))
}

func (h *host) join(peer Offer) error {
	for i := range h.qps {
		if err := h.connect(i, &peer, i); err != nil {
			return err
		}
	}
	return nil
}

func (h *host) remote(off int) ib.Remote {
	return ib.Remote{Addr: h.far.Addr + uint64(off), RKey: h.far.RKey}
}

// progress is the far end of one-sided operations.
func (h *host) progress(stop *halt) error {
	for !stop.stop.Load() {
		h.dev.Progress()
	}
	return nil
}

// resent counts what shows trouble.
func (h *host) resent() uint64 { return h.dev.Stats().Get("retransmitted") }

func (h *host) close() error {
	var errs []error
	for _, q := range h.qps {
		errs = append(errs, q.Close())
	}
	if h.cq != nil {
		errs = append(errs, h.cq.Close())
	}
	if h.mr != nil {
		errs = append(errs, h.mr.Close())
	}
	if h.pd != nil {
		errs = append(errs, h.pd.Close())
	}
	if h.mem != nil {
		errs = append(errs, h.mem.Close())
	}
	return errors.Join(errs...)
}

// check turns a failed completion into an error.
func check(wcs []ib.WC) error {
	for i := range wcs {
		if wcs[i].Status != ib.Success {
			return fmt.Errorf("work request %d on QP %v: %v", wcs[i].ID, wcs[i].QPN, wcs[i].Status)
		}
	}
	return nil
}

func opOf(name string) ib.WROp {
	switch name {
	case "read":
		return ib.Read
	case "send":
		return ib.Send
	}
	return ib.Write
}

// stream keeps messages of one operation in flight on each queue pair.
type stream struct {
	host
	op    ib.WROp
	depth int // messages in flight on a queue pair
	out   []int
	wrs   []ib.SendWR
	next  int // where in the region the next message is
}

const recvDepth = 64

func newStream(c *child, s *Spec) *stream {
	return &stream{host: newHost(c, s), op: opOf(s.Op), depth: max(4, min(32, 2<<20/s.Size))}
}

func (s *stream) prepare() (Offer, error) {
	s.out = make([]int, s.spec.QPs)
	s.wrs = make([]ib.SendWR, s.depth)
	recvs := 0
	if s.op.IsSend() {
		recvs = recvDepth
	}
	return s.open(s.spec.QPs, s.depth, recvs)
}

func (s *stream) join(peer Offer) error {
	if err := s.host.join(peer); err != nil {
		return err
	}
	if !s.op.IsSend() || s.c.near {
		return nil
	}
	for i := range s.qps {
		for range recvDepth {
			if err := s.postRecv(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// place returns where the next message is. Messages walk through the region.
func (s *stream) place() int {
	off := s.next
	if s.next += s.spec.Size; s.next+s.spec.Size > regionBytes {
		s.next = 0
	}
	return off
}

func (s *stream) postRecv(i int) error {
	return s.qps[i].PostRecv(ib.RecvWR{ID: uint64(i), SGL: s.mr.SGE(s.place(), s.spec.Size)})
}

// fill posts what queue pair i has room for.
func (s *stream) fill(i int) error {
	n := s.depth - s.out[i]
	for k := range n {
		off := s.place()
		s.wrs[k] = ib.SendWR{ID: uint64(i), Op: s.op, Flags: ib.Signaled, SGL: s.mr.SGE(off, s.spec.Size), Remote: s.remote(off)}
	}
	if n == 0 {
		return nil
	}
	_, err := s.qps[i].PostSendBatch(s.wrs[:n])
	s.out[i] += n
	return err
}

func (s *stream) slot(d time.Duration) (sample Sample, err error) {
	before := s.resent()
	m := newMeter(d)
	var done uint64
	inFlight := 0
	stopping := false
	giveUp := time.Now().Add(d + patience/2)
	for spins := 0; !stopping || inFlight > 0; spins++ {
		if !stopping {
			inFlight = 0
			for i := range s.qps {
				if err := s.fill(i); err != nil {
					return sample, err
				}
				inFlight += s.out[i]
			}
		}
		n := s.cq.Poll(s.wcs[:])
		if n == 0 {
			if spins%4096 == 0 && time.Now().After(giveUp) {
				return sample, errors.New("no completion comes any more")
			}
			continue
		}
		if err := check(s.wcs[:n]); err != nil {
			return sample, err
		}
		for i := range n {
			s.out[s.wcs[i].ID]--
		}
		inFlight -= n
		done += uint64(n)
		if !stopping {
			stopping = m.tick(done, &sample)
		}
	}
	sample.Bytes = sample.Messages * uint64(s.spec.Size)
	sample.Resent = s.resent() - before
	return sample, nil
}

func (s *stream) serve(h *halt) error {
	if !s.op.IsSend() {
		return s.progress(h)
	}
	for !h.stop.Load() {
		n := s.cq.Poll(s.wcs[:])
		if err := check(s.wcs[:n]); err != nil {
			return err
		}
		for i := range n {
			if err := s.postRecv(int(s.wcs[i].ID)); err != nil {
				return err
			}
		}
	}
	return nil
}

// rate posts small WRITEs, many a call, of which the last is signaled.
type rate struct {
	host
	wrs [rateBatch]ib.SendWR
	out int // batches in flight
}

const (
	rateBatch   = 64
	rateBatches = 4
)

func newRate(c *child, s *Spec) *rate { return &rate{host: newHost(c, s)} }

func (r *rate) prepare() (Offer, error) { return r.open(1, rateBatch*rateBatches, 0) }

func (r *rate) join(peer Offer) error {
	if err := r.host.join(peer); err != nil {
		return err
	}
	for i := range r.wrs {
		off := i * r.spec.Size
		r.wrs[i] = ib.SendWR{Op: ib.Write, SGL: r.mr.SGE(off, r.spec.Size), Remote: r.remote(off)}
	}
	r.wrs[rateBatch-1].Flags = ib.Signaled
	return nil
}

func (r *rate) slot(d time.Duration) (sample Sample, err error) {
	before := r.resent()
	m := newMeter(d)
	var done uint64
	giveUp := time.Now().Add(d + patience/2)
	stopping := false
	for spins := 0; !stopping || r.out > 0; spins++ {
		for !stopping && r.out < rateBatches {
			if _, err := r.qps[0].PostSendBatch(r.wrs[:]); err != nil {
				return sample, err
			}
			r.out++
		}
		n := r.cq.Poll(r.wcs[:])
		if n == 0 {
			if spins%4096 == 0 && time.Now().After(giveUp) {
				return sample, errors.New("no completion comes any more")
			}
			continue
		}
		if err := check(r.wcs[:n]); err != nil {
			return sample, err
		}
		r.out -= n
		done += uint64(n) * rateBatch
		if !stopping {
			stopping = m.tick(done, &sample)
		}
	}
	sample.Bytes = sample.Messages * uint64(r.spec.Size)
	sample.Resent = r.resent() - before
	return sample, nil
}

func (r *rate) serve(h *halt) error { return r.progress(h) }
