package verbs

import (
	"net/netip"
	"sync"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rnic"
)

// MADLen is the length of a management datagram in bytes (IBA vol.1 13.4.2).
const MADLen = 256

// GSIPeer is the other end of a management datagram.
type GSIPeer struct {
	GID      ib.GID
	GIDIndex int    // the local row that the datagram was sent to, or shall be sent from
	QPN      ib.QPN // 1 where the peer is another connection manager
	// For sending:
	TrafficClass uint8
	SL           uint8
}

// GSI is QP1 of a device: the general services interface, over which connection
// managers talk (IBA vol.1 13.5.1). It sends and receives management datagrams
// of MADLen bytes and knows nothing of what is in them. A device has one at a
// time. Its methods may be called from any goroutine.
type GSI struct {
	dev  *Device
	pd   *PD
	cq   *CQ
	mr   *MR
	qp   *QP
	wake chan struct{}

	mu  sync.Mutex // what is below, and the consumer's side of cq
	wcs [16]ib.WC
	ahs map[ib.AV]*AH
	avs []ib.AV // of ahs, oldest first
}

const (
	gsiRecvs = 256
	gsiSends = 256
	gsiGRH   = 40 // before each datagram
	gsiSlot  = gsiGRH + MADLen
	gsiAHs   = 256 // kept for the next datagram to the same peer
)

// OpenGSI opens QP1. The error matches ErrBusy if the device's QP1 is open
// already, ErrClosed if the device is closed.
func (d *Device) OpenGSI() (*GSI, error) {
	g := &GSI{dev: d, pd: d.AllocPD(), wake: make(chan struct{}, 1), ahs: make(map[ib.AV]*AH)}
	if err := g.open(); err != nil {
		_ = g.Close()
		return nil, err
	}
	return g, nil
}

func (g *GSI) open() (err error) {
	if g.cq, err = g.dev.CreateCQ(CQConfig{Depth: gsiRecvs + gsiSends, Vector: VectorOf(0)}); err != nil {
		return err
	}
	if g.mr, err = g.pd.RegisterMR(make([]byte, gsiRecvs*gsiSlot), ib.LocalWrite); err != nil {
		return err
	}
	if err := g.create(); err != nil {
		return err
	}
	g.cq.cq.OnWatch(g.signal)
	g.cq.cq.Watch(true)
	if err := g.qp.ToInitUD(rnic.GSIQKey); err != nil {
		return err
	}
	for i := range gsiRecvs {
		if err := g.post(uint64(i)); err != nil {
			return err
		}
	}
	if err := g.qp.ToRTR(Path{}); err != nil {
		return err
	}
	return g.qp.ToRTS(Path{LocalPSN: ib.PSN(random32()) & ib.PSNMask})
}

func (g *GSI) create() error {
	q := &QP{pd: g.pd, sendCQ: g.cq, recvCQ: g.cq, shard: g.dev.shards[0]}
	err := g.dev.do("create QP 1", func(now clock.Time) error {
		qp, err := g.dev.adapter.CreateGSI(now, rnic.QPConfig{
			PD: g.pd.pd, SendCQ: g.cq.cq, RecvCQ: g.cq.cq,
			Cap: ib.QPCap{MaxSendWR: gsiSends, MaxRecvWR: gsiRecvs, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: MADLen},
		})
		q.qp = qp
		return err
	})
	if err != nil {
		return err
	}
	g.cq.use(q.shard)
	g.dev.adopt(q)
	g.qp = q
	return nil
}

func (g *GSI) post(slot uint64) error {
	return g.qp.PostRecv(ib.RecvWR{ID: slot, SGL: g.mr.SGE(int(slot)*gsiSlot, gsiSlot)})
}

// WatchFirst begins or ends watching a queue pair in RTR for its first message
// (IBA vol.1 12.9.7.2): when it comes, C wakes and First returns the queue pair
// once, in place of the device's event COMM_EST, which is the connection
// manager's to act upon. Begin before the peer may send.
func (g *GSI) WatchFirst(q *QP, on bool) { g.dev.firsts.watch(q.Num(), on, g.signal) }

// First returns a queue pair that WatchFirst was asked for and whose first
// message has come; ok is false if there is none.
func (g *GSI) First() (qpn ib.QPN, ok bool) { return g.dev.firsts.pop() }

// signal says that something has come. Driver's lock held.
func (g *GSI) signal() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// C returns a channel from which a value can be received when there may be a
// datagram: call Recv until it returns false.
func (g *GSI) C() <-chan struct{} { return g.wake }

// Recv copies the oldest datagram into b and says whom it is from; ok is false
// if there is none. It does not drive the device: the device's own goroutine
// does, or whoever polls.
func (g *GSI) Recv(b *[MADLen]byte) (from GSIPeer, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		one := g.wcs[:1]
		if g.cq.take(one) == 0 {
			return GSIPeer{}, false
		}
		wc := &one[0]
		if wc.Op != ib.WCRecv || wc.Status != ib.Success {
			continue // of a send, which only fails; or flushed
		}
		slot := g.mr.Bytes()[wc.ID*gsiSlot:][:gsiSlot]
		ok = wc.Bytes == gsiSlot && wc.Flags&ib.WCWithGRH != 0
		if ok {
			copy(b[:], slot[gsiGRH:])
			from = GSIPeer{GID: sourceOf(slot), GIDIndex: int(wc.SGIDIndex), QPN: wc.SrcQPN}
		}
		_ = g.post(wc.ID) // a closed one takes no more
		if ok {
			return from, true
		}
	}
}

// sourceOf returns the sender in the 40 bytes of a GRH: an IPv6 header or,
// behind 20 bytes of nothing, an IPv4 header.
func sourceOf(grh []byte) ib.GID {
	if grh[0]>>4 == 6 {
		return ib.GID(grh[8:24])
	}
	return ib.GIDFromAddr(netip.AddrFrom4([4]byte(grh[32:36])))
}

// Send sends a datagram. It is lost if the way out is full: those who send
// datagrams send again. The error says why there is no way to the peer.
func (g *GSI) Send(to GSIPeer, b *[MADLen]byte) error {
	g.mu.Lock()
	ah, err := g.handle(ib.AV{DGID: to.GID, SGIDIndex: to.GIDIndex, TrafficClass: to.TrafficClass, SL: to.SL})
	g.mu.Unlock()
	if err != nil {
		return err
	}
	return g.qp.PostSend(ib.SendWR{
		Op: ib.Send, Flags: ib.Inline, InlineData: b[:], UD: ib.Datagram{AH: ah.Handle(), QPN: to.QPN, QKey: rnic.GSIQKey},
	})
}

// Reach returns why datagrams cannot be sent to a peer, or nil.
func (g *GSI) Reach(to GSIPeer) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, err := g.handle(ib.AV{DGID: to.GID, SGIDIndex: to.GIDIndex, TrafficClass: to.TrafficClass, SL: to.SL})
	return err
}

// handle returns an address handle, which is kept for a while. g.mu held.
func (g *GSI) handle(av ib.AV) (*AH, error) {
	if ah := g.ahs[av]; ah != nil {
		return ah, nil
	}
	ah, err := g.pd.CreateAH(av)
	if err != nil {
		return nil, err
	}
	if len(g.avs) == gsiAHs {
		old := g.avs[0]
		g.avs = append(g.avs[:0], g.avs[1:]...)
		_ = g.ahs[old].Close()
		delete(g.ahs, old)
	}
	g.ahs[av] = ah
	g.avs = append(g.avs, av)
	return ah, nil
}

// Close gives QP1 back, after what was sent has left.
func (g *GSI) Close() error {
	_ = g.dev.drv.Do(func(clock.Time) {}) // it ends with sending
	g.mu.Lock()
	defer g.mu.Unlock()
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	if g.qp != nil {
		keep(g.qp.Close())
	}
	for _, av := range g.avs {
		keep(g.ahs[av].Close())
	}
	g.ahs, g.avs = nil, nil
	if g.mr != nil {
		keep(g.mr.Close())
	}
	if g.cq != nil {
		keep(g.cq.Close())
	}
	if g.pd.err == nil {
		keep(g.pd.Close())
	}
	return first
}
