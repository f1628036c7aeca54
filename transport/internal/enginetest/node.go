package enginetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// Config describes a node. Zero fields take defaults.
type Config struct {
	Name    string
	QPN     ib.QPN
	Depth   int // of both queues; 16
	SGE     int // 4
	Inline  int // 256
	Bytes   int // of registered memory; 64 KiB
	SigAll  bool
	Phantom bool
	MigReq  bool
}

// Base is the address of the first byte of a node's memory: not that of the
// slice behind it.
const Base = 0x10000

// PD is the protection domain of every node.
const PD mem.PD = 7

// Fatal is what of testing.TB and rapid.T a node needs.
type Fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Node is one queue pair. Log holds what the engine has reported, one line
// each, since it was last taken.
type Node struct {
	t        Fatal
	cfg      Config
	Eng      transport.Engine
	Mem      *mem.Table
	MR       *mem.Region // read and write, all remote access
	RO       *mem.Region // the same bytes, local read only
	Buf      []byte      // nil if phantom
	Send     *transport.SendQueue
	Recv     *transport.RecvQueue
	Counters transport.Counters
	Now      clock.Time

	Log     []string
	SendWCs []ib.WC
	RecvWCs []ib.WC
	Drops   [transport.NumDrops]int
	// OnSendDone is called at each completion of the send queue, when the
	// program may use the memory again.
	OnSendDone func(wc *ib.WC)

	emitting bool
	out      transport.Out
	frags    []mem.Frag
	pkt      wire.Packet
	in       transport.In
}

// New returns a node with the engine that make returns.
func New(t Fatal, cfg Config, newEngine func(transport.Config) transport.Engine) *Node {
	if cfg.Depth == 0 {
		cfg.Depth = 16
	}
	if cfg.SGE == 0 {
		cfg.SGE = 4
	}
	if cfg.Inline == 0 {
		cfg.Inline = 256
	}
	if cfg.Bytes == 0 {
		cfg.Bytes = 64 << 10
	}
	key := uint32(0x1000)
	n := &Node{
		t: t, cfg: cfg, Mem: mem.NewTable(func() uint32 { key++; return key }),
		Send: transport.NewSendQueue(cfg.Depth, cfg.SGE, cfg.Inline), Recv: transport.NewRecvQueue(cfg.Depth, cfg.SGE),
		Now: 1000,
	}
	if cfg.Phantom {
		n.MR = n.must(n.Mem.RegisterPhantom(PD, uint64(cfg.Bytes), Base, ib.LocalWrite|ib.RemoteAll))
		n.RO = n.must(n.Mem.RegisterPhantom(PD, uint64(cfg.Bytes), Base, 0))
	} else {
		n.Buf = make([]byte, cfg.Bytes)
		n.MR = n.must(n.Mem.Register(PD, n.Buf, Base, ib.LocalWrite|ib.RemoteAll))
		n.RO = n.must(n.Mem.Register(PD, n.Buf, Base, 0))
	}
	n.Eng = newEngine(transport.Config{
		QPN: cfg.QPN, PD: PD, Mem: n.Mem, Send: n.Send, Recv: n.Recv, Sink: (*sink)(n),
		SigAll: cfg.SigAll, MigReq: cfg.MigReq, Counters: &n.Counters,
	})
	return n
}

func (n *Node) must(r *mem.Region, err error) *mem.Region {
	if err != nil {
		n.t.Fatalf("%v", err)
	}
	return r
}

// SGE returns the element of k bytes, off bytes into the memory.
func (n *Node) SGE(off, k int) ib.SGE {
	return ib.SGE{Addr: Base + uint64(off), Length: uint32(k), LKey: n.MR.LKey}
}

// Remote returns the place off bytes into the memory.
func (n *Node) Remote(off int) ib.Remote { return ib.Remote{Addr: Base + uint64(off), RKey: n.MR.RKey} }

// Modify hands attributes to the engine.
func (n *Node) Modify(a ib.QPAttr) { n.Eng.Modify(n.Now, &a) }

// Enter changes the state and nothing else.
func (n *Node) Enter(s ib.QPState) { n.Modify(ib.QPAttr{Mask: ib.AttrState, State: s}) }

// PostSend posts a request as the adapter does, which has validated it.
func (n *Node) PostSend(wr ib.SendWR) {
	n.t.Helper()
	if n.Send.Free() == 0 {
		n.t.Fatalf("%s: the send queue is full", n.cfg.Name)
	}
	w := n.Send.Slot(0)
	w.ID, w.Op, w.Flags, w.Imm, w.Remote, w.UD = wr.ID, wr.Op, wr.Flags, wr.Imm, wr.Remote, wr.UD
	total := len(wr.InlineData)
	for _, e := range wr.SGL {
		total += int(e.Length)
	}
	w.Len = uint32(total)
	if wr.Flags&ib.Inline != 0 {
		w.Inline = append(n.Send.InlineRoom(0), wr.InlineData...)
	} else {
		w.SGL = append(w.SGL, wr.SGL...)
	}
	n.Send.Publish(1)
	n.Eng.Post(n.Now)
}

// PostRecv posts a receive.
func (n *Node) PostRecv(id uint64, sgl ...ib.SGE) {
	n.t.Helper()
	if n.Recv.Free() == 0 {
		n.t.Fatalf("%s: the receive queue is full", n.cfg.Name)
	}
	w := n.Recv.Slot(0)
	w.ID = id
	w.SGL = append(w.SGL, sgl...)
	n.Recv.Publish(1)
	n.Eng.Post(n.Now)
}

// Packet is one packet on its way: the bytes from BTH to pad, and what the
// adapter knows beside them.
type Packet struct {
	Head    transport.Head
	Bytes   []byte
	Phantom int // payload bytes that are not in Bytes
}

// Decode returns the packet as a value.
func (p Packet) Decode() (v wire.Packet) {
	v.Decode(p.Bytes)
	return v
}

func (p *Packet) String() string {
	v := p.Decode()
	return fmt.Sprintf("%v, PSN %v, %d bytes", v.Op, v.PSN, len(v.Payload)+p.Phantom)
}

// Next returns the next packet that the engine emits; ok is false if there is
// none. Every packet is held against what is true of all: the announced length,
// the pad, and AckReq, which unreliable services never set.
func (n *Node) Next() (p Packet, ok bool) {
	n.t.Helper()
	h, ok := n.Eng.Next(n.Now)
	if !ok {
		return p, false
	}
	n.out = transport.Out{Frags: n.frags[:0]}
	n.emitting = true
	n.Eng.Emit(n.Now, &n.out)
	n.emitting = false
	n.frags = n.out.Frags
	p = Packet{Head: h, Bytes: make([]byte, h.WireLen-wire.ICRCLen)}
	k := n.out.EncodeHeaders(p.Bytes)
	if k == 0 || k+n.out.Len+int(wire.PadFor(n.out.Len)) != len(p.Bytes) || n.out.Pad != wire.PadFor(n.out.Len) {
		n.t.Fatalf("%s: %v: announced %d bytes, headers %d, payload %d, pad %d", n.cfg.Name, n.out.Op, h.WireLen, k, n.out.Len, n.out.Pad)
	}
	if n.out.AckReq || n.out.MigReq != n.cfg.MigReq || n.out.PKey != ib.DefaultPKey || n.out.FECN || n.out.BECN {
		n.t.Fatalf("%s: wrong bits in the BTH: %+v", n.cfg.Name, n.out.Packet)
	}
	b := append(p.Bytes[:k:len(p.Bytes)], n.out.Inline...)
	for _, f := range n.out.Frags {
		b = append(b, f.Data...)
		p.Phantom += f.Phantom
	}
	if len(b)-k+p.Phantom != n.out.Len {
		n.t.Fatalf("%s: %v: payload of %d bytes, announced %d", n.cfg.Name, n.out.Op, len(b)-k+p.Phantom, n.out.Len)
	}
	if p.Phantom > 0 { // the bytes are not there, and neither are they on this wire
		v := n.out.Packet
		v.Pad = 0
		p.Bytes = p.Bytes[:v.EncodeHeaders(p.Bytes)]
	}
	return p, true
}

// Drain emits all packets that may leave now, and lets what has left complete.
func (n *Node) Drain() (ps []Packet) {
	n.t.Helper()
	for {
		p, ok := n.Next()
		if !ok {
			break
		}
		ps = append(ps, p)
		if n.Eng.SendAt() == clock.Never {
			break
		}
	}
	for n.Eng.Deadline() <= n.Now {
		n.Eng.Advance(n.Now)
	}
	if n.Eng.SendAt() != clock.Never {
		n.t.Fatalf("%s: SendAt is %v with nothing to send", n.cfg.Name, n.Eng.SendAt())
	}
	return ps
}

// GRH is what every packet carries in front of the BTH.
var GRH = func() (g [40]byte) {
	for i := range g {
		g[i] = 0xA0 + byte(i)
	}
	return g
}()

// SGIDIndex is the row of the GID table that every packet was sent to.
const SGIDIndex = 3

// Deliver hands packets to the engine.
func (n *Node) Deliver(ps ...Packet) {
	n.t.Helper()
	for i := range ps {
		// A copy: the engine must not keep what it is shown.
		b := slices.Clone(ps[i].Bytes)
		if r := n.pkt.Decode(b); r != wire.ReasonNone {
			n.t.Fatalf("%s: %v", n.cfg.Name, r)
		}
		grh := GRH
		n.in = transport.In{GRH: &grh, SGIDIndex: SGIDIndex, PhantomLen: ps[i].Phantom}
		n.Eng.Receive(n.Now, &n.pkt, &n.in)
		clear(b)
		clear(grh[:])
	}
}

// Take returns the log as lines and empties it.
func (n *Node) Take() string {
	s := strings.Join(n.Log, "\n")
	n.Log = n.Log[:0]
	return s
}

// Want compares the log with lines and empties it.
func (n *Node) Want(lines ...string) {
	n.t.Helper()
	if got, want := n.Take(), strings.Join(lines, "\n"); got != want {
		n.t.Fatalf("%s reported\n%s\nwant\n%s", n.cfg.Name, indent(got), indent(want))
	}
}

// WantPackets compares packets with lines, as [Packet.String] writes them.
func WantPackets(t testing.TB, ps []Packet, lines ...string) {
	t.Helper()
	var got []string
	for i := range ps {
		got = append(got, ps[i].String())
	}
	if g, w := strings.Join(got, "\n"), strings.Join(lines, "\n"); g != w {
		t.Fatalf("packets\n%s\nwant\n%s", indent(g), indent(w))
	}
}

func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }

// sink is the node as its engine sees it.
type sink Node

func (s *sink) SendDone(wc *ib.WC) {
	if s.emitting {
		s.t.Fatalf("%s: send %d completes before its last packet was copied", s.cfg.Name, wc.ID)
	}
	s.SendWCs = append(s.SendWCs, *wc)
	s.Log = append(s.Log, fmt.Sprintf("send %d: %v %v", wc.ID, wc.Op, wc.Status))
	if s.OnSendDone != nil {
		s.OnSendDone(wc)
	}
}

func (s *sink) RecvDone(wc *ib.WC, solicited bool) {
	s.RecvWCs = append(s.RecvWCs, *wc)
	line := fmt.Sprintf("recv %d: %v %v", wc.ID, wc.Op, wc.Status)
	if wc.Status == ib.Success {
		line += fmt.Sprintf(", %d bytes", wc.Bytes)
		if wc.Flags&ib.WCWithImm != 0 {
			line += fmt.Sprintf(", imm 0x%x", wc.Imm)
		}
		if wc.Flags&ib.WCWithGRH != 0 {
			line += ", GRH"
		}
		if solicited {
			line += ", solicited"
		}
	}
	s.Log = append(s.Log, line)
}

func (s *sink) Event(t ib.EventType) { s.Log = append(s.Log, "event "+t.String()) }

func (s *sink) Drop(d transport.Drop) {
	s.Drops[d]++
	s.Log = append(s.Log, "drop "+d.String())
}
