package host

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rnic"
)

// Spec describes a connection.
type Spec struct {
	Service ib.QPType // RC, UC or UD
	Prio    uint8
	DSCP    uint8
	SrcPort uint16   // 0: a function of the queue pair
	Rate    sim.Rate // limit of each queue pair; 0: the NIC's alone
	Depth   int      // messages that may be posted at a time; 0 means 1
	Sends   bool     // SENDs will be posted: the receiver keeps receives posted
	Tag     uint64   // the boss' own
}

// Conn is a queue pair at either end, connected without packets: a connection
// that was made before the run looks at it. Data moves from A to B; of READs,
// from B to A, asked for by A.
//
// What every packet needs is in front, the ends' addresses among it: the other NIC
// is cold.
type Conn struct {
	A    *NIC
	ends [2]end    // A's and B's
	msgs []message // posted and not ended, oldest first
	next ib.PSN    // expected by the receiver of data
	high ib.PSN    // after the last data packet that was sent
	redo ib.PSN    // behind the last data packet, whether or not it was new
	any  bool      // one was sent
	told bool      // a NAK has come since
	rc   bool      // the service is reliable

	Packets       uint64 // data packets that left
	Retransmitted uint64 // of them, sent before
	Timeouts      uint64 // local ACK timeouts of A
	LastArrival   sim.Time
	one           [1]message    // room of msgs where no more may be posted
	addrs         [2]netip.Addr // of the ends

	B     *NIC
	Spec  Spec
	a, b  *rnic.QP
	ah    ib.AH
	psn   ib.PSN   // of the next message
	last  int32    // flow of the message that ended last, or -1
	used  int      // receives that have ended and are not posted again
	sport uint16   // of A's packets
	rport uint16   // of B's
	_     [60]byte // to whole lines
}

// end is what a packet has to say of the NIC that sends it.
type end struct {
	endpoint int32
	hash     uint32 // over addresses, ports and protocol
}

// message is one that was posted and has not ended. Its packets have the PSNs
// from first on; those of a READ are its answer's.
type message struct {
	id      uint64
	flow    int32
	first   ib.PSN
	packets uint32
	op      ib.WROp
}

// recvID is the ID of every posted receive.
const recvID = ^uint64(0)

// How many receives are kept posted: a datagram's sender does not wait.
const (
	recvDepth     = 32
	recvDepthUD   = 1024
	recvBytes     = 1<<30 + 40
	recvRepostMin = 8
)

// Dial connects two NICs.
func Dial(now sim.Time, a, b *NIC, spec Spec) (*Conn, error) {
	if a == b {
		return nil, fmt.Errorf("connection of %s with itself", a.cfg.Name)
	}
	spec.Depth = max(spec.Depth, 1)
	c := &Conn{A: a, B: b, Spec: spec, rc: spec.Service == ib.RC, last: -1}
	c.msgs = c.one[:0]
	var err error
	if c.a, err = a.createQP(now, spec); err != nil {
		return nil, err
	}
	if c.b, err = b.createQP(now, spec); err != nil {
		_ = a.dev.DestroyQP(now.Clock(), c.a)
		return nil, err
	}
	c.sport = sourcePort(spec.SrcPort, uint32(c.a.Number()), a.cfg.Endpoint)
	c.rport = sourcePort(0, uint32(c.b.Number()), b.cfg.Endpoint)
	c.ends[0] = end{a.cfg.Endpoint, tupleHash(a, b, c.sport)}
	c.ends[1] = end{b.cfg.Endpoint, tupleHash(b, a, c.rport)}
	c.addrs[0], c.addrs[1] = a.cfg.Addr, b.cfg.Addr
	psnA := ib.PSN(sim.Mix(uint64(c.a.Number())^a.s.Seed())) & ib.PSNMask
	psnB := ib.PSN(sim.Mix(uint64(c.b.Number())^b.s.Seed())) & ib.PSNMask
	c.psn, c.next, c.high = psnA, psnA, psnA
	if err = a.bringUp(now, c.a, b, c.b, spec, c.sport, psnA, psnB); err == nil {
		err = b.bringUp(now, c.b, a, c.a, spec, c.rport, psnB, psnA)
	}
	if err == nil && spec.Service == ib.UD {
		c.ah, err = a.dev.CreateAH(a.pd, a.vector(b, spec))
	}
	if err != nil {
		_ = a.dev.DestroyQP(now.Clock(), c.a)
		_ = b.dev.DestroyQP(now.Clock(), c.b)
		return nil, err
	}
	if spec.Sends {
		if err := c.receive(now, spec.receives()); err != nil {
			return nil, err
		}
	}
	a.conns.put(uint32(c.a.Number()), c)
	b.conns.put(uint32(c.b.Number()), c)
	return c, nil
}

func sourcePort(wanted uint16, qpn uint32, endpoint int32) uint16 {
	if wanted != 0 {
		return wanted
	}
	return 0xC000 | uint16(sim.Mix(uint64(qpn)<<32|uint64(uint32(endpoint)))&0x3FFF)
}

// tupleHash is the hash over addresses, ports and protocol of packets from a to
// b, before a switch mixes in its seed.
func tupleHash(a, b *NIC, sport uint16) uint32 {
	s, d := a.cfg.Addr.As4(), b.cfg.Addr.As4()
	h := sim.Mix(uint64(binary.BigEndian.Uint32(s[:]))<<32 | uint64(binary.BigEndian.Uint32(d[:])))
	return uint32(sim.Mix(h^uint64(sport)<<16^rocePort) >> 32)
}

func (n *NIC) createQP(now sim.Time, spec Spec) (*rnic.QP, error) {
	return n.dev.CreateQP(now.Clock(), rnic.QPConfig{
		Type: spec.Service, PD: n.pd, SendCQ: n.cq, RecvCQ: n.cq,
		Cap: ib.QPCap{MaxSendWR: spec.Depth, MaxRecvWR: spec.receives(), MaxSendSGE: 1, MaxRecvSGE: 1},
	})
}

// receives is how many receives the receiver keeps posted.
func (s *Spec) receives() int {
	switch {
	case !s.Sends:
		return 1
	case s.Service == ib.UD:
		return recvDepthUD
	}
	return recvDepth
}

func (n *NIC) vector(peer *NIC, spec Spec) *ib.AV {
	return &ib.AV{DGID: ib.GIDFromAddr(peer.cfg.Addr), TrafficClass: spec.DSCP << 2, SL: spec.Prio}
}

const qkey = 0x11111111

// bringUp takes a queue pair to RTS.
func (n *NIC) bringUp(now sim.Time, q *rnic.QP, peer *NIC, pq *rnic.QP, spec Spec, port uint16, psn, peerPSN ib.PSN) error {
	n.want = port
	t := now.Clock()
	rate, limit := ib.AttrMask(0), n.cfg.QPRate
	if spec.Rate != 0 && (limit == 0 || spec.Rate < limit) {
		limit = spec.Rate
	}
	if limit >= n.cfg.Rate {
		limit = 0 // the link is the limit
	}
	if limit != 0 {
		rate = ib.AttrRateLimit
	}
	var steps [3]ib.QPAttr
	switch spec.Service {
	case ib.UD:
		steps[0] = ib.QPAttr{Mask: ib.AttrState | ib.AttrPKeyIndex | ib.AttrPort | ib.AttrQKey, State: ib.Init, Port: 1, QKey: qkey}
		steps[1] = ib.QPAttr{Mask: ib.AttrState, State: ib.RTR}
		steps[2] = ib.QPAttr{Mask: ib.AttrState | ib.AttrSQPSN | rate, State: ib.RTS, SQPSN: psn, RateLimitKbps: kbps(limit)}
	default:
		steps[0] = ib.QPAttr{
			Mask: ib.AttrState | ib.AttrPKeyIndex | ib.AttrPort | ib.AttrAccess, State: ib.Init, Port: 1,
			Access: ib.RemoteWrite | ib.RemoteRead | ib.RemoteAtomic,
		}
		steps[1] = ib.QPAttr{
			Mask:  ib.AttrState | ib.AttrAV | ib.AttrPathMTU | ib.AttrDestQPN | ib.AttrRQPSN,
			State: ib.RTR, AV: *n.vector(peer, spec), PathMTU: n.cfg.MTU, DestQPN: pq.Number(), RQPSN: peerPSN,
		}
		steps[2] = ib.QPAttr{Mask: ib.AttrState | ib.AttrSQPSN | rate, State: ib.RTS, SQPSN: psn, RateLimitKbps: kbps(limit)}
		if spec.Service == ib.RC {
			steps[1].Mask |= ib.AttrMaxDestRdAtomic | ib.AttrMinRNRTimer
			steps[1].MaxDestRdAtomic, steps[1].MinRNRTimer = 4, n.cfg.MinRNRTimer
			steps[2].Mask |= ib.AttrTimeout | ib.AttrRetryCnt | ib.AttrRNRRetry | ib.AttrMaxRdAtomic
			steps[2].TimeoutExp, steps[2].RetryCnt = n.cfg.TimeoutExp, n.cfg.RetryCnt
			steps[2].RNRRetry, steps[2].MaxRdAtomic = n.cfg.RNRRetry, 4
		}
	}
	for i := range steps {
		if err := n.dev.ModifyQP(t, q, &steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// kbps is a rate limit as a queue pair has it. A limit of less than 1 kb/s is
// not none, and one beyond 32 bits (4.29 Tb/s) is the greatest.
func kbps(limit sim.Rate) uint32 {
	if limit == 0 {
		return 0
	}
	return uint32(min(max(limit/sim.Kbps, 1), math.MaxUint32))
}

// Post adds a message of a flow. A message of more than 2^31 bytes is the
// caller's to cut.
func (c *Conn) Post(now sim.Time, op ib.WROp, bytes int64, flow int32, id uint64) error {
	wr := ib.SendWR{
		ID: id, Op: op, Flags: ib.Signaled,
		SGL:    []ib.SGE{{Addr: addrBase, Length: uint32(bytes), LKey: c.A.mr.LKey}},
		Remote: ib.Remote{Addr: addrBase, RKey: c.B.mr.RKey},
	}
	if c.Spec.Service == ib.UD {
		wr.UD = ib.Datagram{AH: c.ah, QPN: c.b.Number(), QKey: qkey}
	}
	packets := c.A.packets(bytes)
	c.msgs = append(c.msgs, message{id: id, flow: flow, first: c.psn, packets: packets, op: op})
	if _, err := c.a.Post([]ib.SendWR{wr}, nil); err != nil {
		c.msgs = c.msgs[:len(c.msgs)-1]
		return err
	}
	c.psn = c.psn.Add(int(packets))
	c.A.dev.Advance(now.Clock())
	c.A.after(now)
	return nil
}

// receive posts n receives.
func (c *Conn) receive(now sim.Time, n int) error {
	sge := [1]ib.SGE{{Addr: addrBase, Length: recvBytes, LKey: c.B.mr.LKey}}
	wr := [1]ib.RecvWR{{ID: recvID, SGL: sge[:]}}
	for range n {
		if _, err := c.b.PostRecv(wr[:]); err != nil {
			return err
		}
	}
	c.B.dev.Advance(now.Clock())
	return nil
}

// received counts receives that have ended and posts others for them.
func (c *Conn) received(now sim.Time) {
	if c.used++; c.used >= recvRepostMin {
		_ = c.receive(now, c.used) // there is room: they have ended
		c.used = 0
	}
}

// packets returns how many packets a message of so many bytes takes.
func (n *NIC) packets(bytes int64) uint32 {
	full := int64(n.cfg.Payload)
	if full == 0 {
		full = int64(n.cfg.MTU.Bytes())
	}
	return uint32(max(1, (bytes+full-1)/full))
}

// Close destroys both queue pairs. Packets that are under way are nobody's.
func (c *Conn) Close(now sim.Time) {
	for _, e := range [2]struct {
		n *NIC
		q *rnic.QP
	}{{c.A, c.a}, {c.B, c.b}} {
		e.n.conns.remove(uint32(e.q.Number()))
		_ = e.n.dev.DestroyQP(now.Clock(), e.q)
	}
	if c.ah != 0 {
		_ = c.A.dev.DestroyAH(c.ah)
	}
	c.msgs = nil
}

// Posted returns how many messages have not ended.
func (c *Conn) Posted() int { return len(c.msgs) }

// SrcPort returns the UDP source port of A's packets.
func (c *Conn) SrcPort() uint16 { return c.sport }

// Hash returns the 5-tuple hash of A's packets.
func (c *Conn) Hash() uint32 { return c.ends[0].hash }

// ReverseHash returns the 5-tuple hash of B's packets.
func (c *Conn) ReverseHash() uint32 { return c.ends[1].hash }

// QP returns the queue pair that sends requests.
func (c *Conn) QP() *rnic.QP { return c.a }

// Sender returns the NIC and the queue pair that data leave from.
func (c *Conn) Sender() (*NIC, *rnic.QP) {
	if len(c.msgs) > 0 && c.msgs[0].op == ib.Read {
		return c.B, c.b
	}
	return c.A, c.a
}

// flowOf returns the flow of a packet: by its PSN, which is of A's space in both
// directions; of a CNP, the flow that is under way.
func (c *Conn) flowOf(p *sim.Packet) int32 {
	if len(c.msgs) == 0 {
		return c.last
	}
	if len(c.msgs) > 1 && p.Head[0] != opCNP {
		s := psn(p)
		for i := range c.msgs {
			if m := &c.msgs[i]; uint32(s.Sub(m.first)) < m.packets {
				return m.flow
			}
		}
	}
	return c.msgs[0].flow
}

// side returns which end n is.
func (c *Conn) side(n *NIC) int {
	if n == c.A {
		return 0
	}
	return 1
}

// sent counts a data packet that leaves n. A requester that goes back has been
// told so by a NAK; if not, its timer has fired.
func (c *Conn) sent(n *NIC, p *sim.Packet) {
	c.Packets++
	if !c.rc {
		return
	}
	s, told := psn(p), c.told
	c.told = false
	if c.any && s.Before(c.high) {
		c.Retransmitted++
		if s != c.redo && !told && n == c.A {
			c.Timeouts++
		}
		c.redo = s.Add(1)
		return
	}
	c.any, c.high, c.redo = true, s.Add(1), s.Add(1)
}

// arrived follows what the receiver of data has in order: of RC the expected
// PSN, of the others everything.
func (c *Conn) arrived(now sim.Time, n *NIC, p *sim.Packet) {
	if c.rc {
		if psn(p) != c.next || n == c.A && len(c.msgs) == 0 {
			return // of a READ that has failed: nobody takes it
		}
		c.next = c.next.Add(1)
	}
	c.LastArrival = now
	n.boss.Delivered(now, c, p.Flow, int(p.Payload))
}

// completed ends the oldest message.
func (c *Conn) completed(now sim.Time, wc *ib.WC) {
	if len(c.msgs) == 0 {
		return
	}
	m := c.msgs[0]
	c.last = m.flow
	c.msgs = c.msgs[:copy(c.msgs, c.msgs[1:])]
	if wc.Status == ib.RetryExcErr && !c.told {
		c.Timeouts++ // the one after which there was no retry left
	}
	c.A.boss.Done(now, c, m.flow, m.id, wc.Status)
}
