package rnic

import (
	"fmt"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/icrc"
	"github.com/verbena-rdma/verbena/wire/ip"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// maxOverhead is the most that surrounds a payload in a UDPPayload frame: a
// WRITE Only with Immediate and the ICRC.
const maxOverhead = wire.BTHLen + wire.RETHLen + wire.ImmDtLen + wire.ICRCLen

// maxRunBytes is the largest UDP payload that IPv4 carries.
const maxRunBytes = 65535 - 20 - 8

// maxEnvelope is the longest envelope without a tag: RoCEv2 over IPv6.
const maxEnvelope = ether.HeaderLen + ip.IPv6Len + ip.UDPLen

// checkEncap says whether the adapter can write the frames of a link.
func (w *WireCaps) checkEncap() error {
	switch {
	case w.Encap != frame.UDPPayload && w.Encap != frame.Ethernet:
		return fmt.Errorf("link encapsulation %d: %w", w.Encap, ErrInvalid)
	case w.Encap == frame.Ethernet && w.Phantom:
		return fmt.Errorf("a phantom link of whole Ethernet frames: %w", ErrUnsupported)
	case w.VLAN > 4094:
		return fmt.Errorf("VLAN %d, can be 1 to 4094, or 0 for none: %w", w.VLAN, ErrInvalid)
	}
	return nil
}

// overhead is the most that surrounds a payload in a frame of the link.
func (w *WireCaps) overhead() int {
	switch {
	case w.Encap != frame.Ethernet:
		return maxOverhead
	case w.Tagged:
		return maxOverhead + maxEnvelope + ether.TagLen
	}
	return maxOverhead + maxEnvelope
}

// carries reports whether the link can carry what rows of a type send.
func (a *Adapter) carries(t ib.GIDType) bool {
	return t == ib.GIDTypeRoCEv2 || t == ib.GIDTypeRoCEv1 && a.ether != nil
}

// gidType is the RoCE version of a row of the GID table, which exists.
func (a *Adapter) gidType(index int) ib.GIDType { return a.cfg.GIDs[index].Type }

// ethernet is what an adapter has besides on a link that carries whole frames.
type ethernet struct {
	vlan    uint16
	tagged  bool
	rate    uint64        // bits a second: what quanta last by
	env     roce.Envelope // of the packet in hand
	control controlOut
	envs    []*envelope // see envelopeTo
	count   etherCounters
	odd     icrc.Flow // of a packet that has no place in the cache
}

// defaultLineRate is that of a link that does not tell its own.
const defaultLineRate = 10_000_000_000

func newEthernet(cfg *Config) *ethernet {
	if cfg.Wire.Encap != frame.Ethernet {
		return nil
	}
	e := &ethernet{vlan: cfg.Wire.VLAN, tagged: cfg.Wire.Tagged || cfg.Wire.VLAN != 0, rate: cfg.LineRate}
	if e.rate == 0 {
		e.rate = defaultLineRate
	}
	return e
}

// etherCounters count what has no place on other links.
type etherCounters struct {
	envelope, vlan, version uint64 // dropped
	rxGlobal, txGlobal      uint64
	rxPause, txPause        [ether.Priorities]uint64
}

// Names of the counters of PFC frames, as mlx5 has them.
var (
	rxPauseNames = prioNames("rx")
	txPauseNames = prioNames("tx")
)

func prioNames(dir string) (n [ether.Priorities]string) {
	for p := range n {
		n[p] = fmt.Sprintf("%s_prio%d_pause", dir, p)
	}
	return n
}

// stats appends the counters.
func (e *ethernet) stats(s Stats) Stats {
	c := &e.count
	s = append(s, Stat{"drop_envelope", c.envelope}, Stat{"drop_vlan", c.vlan}, Stat{"drop_roce_version", c.version},
		Stat{"rx_global_pause", c.rxGlobal}, Stat{"tx_global_pause", c.txGlobal})
	for p := range c.rxPause {
		s = append(s, Stat{rxPauseNames[p], c.rxPause[p]})
	}
	for p := range c.txPause {
		s = append(s, Stat{txPauseNames[p], c.txPause[p]})
	}
	return s
}

// envelope is what stands before the packets to one peer on a link that carries
// whole frames, ready to be copied. What differs from path to path and from
// packet to packet is written into the copy. The MACs are the link's to write.
type envelope struct {
	head  [maxEnvelope + ether.TagLen]byte
	kind  roce.Kind
	n     int // bytes of head
	l2    int // of these, before the IP header or GRH
	dst   ib.GID
	row   int32
	label uint32
}

// envelopeTo returns the envelope of an address vector, for path.env; 0 where
// the link has none. There is one for each peer that was ever named: a path has
// its number and no pointer, so that queue pairs are no larger for it.
func (a *Adapter) envelopeTo(av *ib.AV) uint32 {
	if a.ether == nil {
		return 0
	}
	for i, e := range a.ether.envs {
		if e.dst == av.DGID && int(e.row) == av.SGIDIndex && e.label == av.FlowLabel {
			return uint32(i + 1)
		}
	}
	row := &a.cfg.GIDs[av.SGIDIndex]
	e := roce.Envelope{Kind: roce.V2IPv6, Src: row.GID, Dst: av.DGID, DF: true, FlowLabel: av.FlowLabel, DstPort: udpPort}
	switch {
	case row.Type == ib.GIDTypeRoCEv1:
		e.Kind = roce.V1
	case row.GID.Is4():
		e.Kind = roce.V2IPv4
	}
	e.Ether.Tagged, e.Ether.Tag = a.ether.tagged, ether.MakeTag(0, false, a.ether.vlan)
	out := &envelope{kind: e.Kind, l2: e.Ether.Len(), dst: av.DGID, row: int32(av.SGIDIndex), label: av.FlowLabel}
	out.n = e.EncodeHeaders(out.head[:], 0)
	a.ether.envs = append(a.ether.envs, out)
	return uint32(len(a.ether.envs))
}

// env returns the envelope of a path, nil where the link has none.
func (a *Adapter) env(p *path) *envelope {
	if p.env == 0 {
		return nil
	}
	return a.ether.envs[p.env-1]
}

// len returns the bytes of the envelope, 0 for nil.
func (e *envelope) len() int {
	if e == nil {
		return 0
	}
	return e.n
}

// wrap writes the envelope of a packet that fills seg and returns what is left
// for the packet itself, from BTH to ICRC: all of it where the link writes
// envelopes (e is nil).
func (e *envelope) wrap(seg []byte, p *path, ident uint16, tos, prio uint8) []byte {
	if e == nil {
		return seg
	}
	copy(seg, e.head[:e.n])
	if e.l2 != ether.HeaderLen {
		seg[14] = seg[14]&0x1F | prio<<5
	}
	rest, h := seg[e.n:], seg[e.l2:e.n]
	if e.kind == roce.V2IPv4 {
		h[1], h[8] = tos, p.ttl
		put16(h[2:], len(h)+len(rest))
		put16(h[4:], int(ident))
		h[10], h[11] = 0, 0
		put16(h[10:], int(ip.Checksum(h[:ip.IPv4Len])))
	} else {
		h[0] = 6<<4 | tos>>4
		h[1] = h[1]&0x0F | tos<<4
		put16(h[4:], len(h)-ip.IPv6Len+len(rest))
		h[7] = p.ttl
	}
	if e.kind != roce.V1 {
		udp := h[len(h)-ip.UDPLen:]
		put16(udp, int(p.sport))
		put16(udp[4:], ip.UDPLen+len(rest))
	}
	return rest
}

func put16(b []byte, v int) { b[0], b[1] = byte(v>>8), byte(v) }

// ingressEther is Ingress for links that carry whole frames.
func (a *Adapter) ingressEther(now clock.Time, f *frame.Rx) {
	seg := f.Seg
	if seg <= 0 || seg > len(f.Data) {
		seg = len(f.Data)
	}
	if seg == 0 {
		a.count.drop(dropShort)
		return
	}
	for data := f.Data; len(data) > 0; {
		n := min(seg, len(data))
		q := a.frame(now, data[:n:n])
		data = data[n:]
		if q != nil {
			a.look(now, q)
		}
		if len(a.overrun) > 0 {
			a.settle(now)
		}
	}
	a.settle(now)
}
