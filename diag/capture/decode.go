package capture

import (
	"errors"
	"io"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/ip"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// Packet is one RoCE packet of a capture.
type Packet struct {
	Frame   int // number of the frame it came in
	Segment int // from 1 within a merged frame; 0 if the frame held one packet
	Since   time.Duration
	roce.Envelope
	IB wire.Packet
	// Bad says what is wrong, empty if nothing: a wrong ICRC, a malformed
	// header, or a frame that the capture cut.
	Bad string
	// Malformed reports that IB could not be decoded.
	Malformed bool
	// Again reports a request or response whose PSN its flow had already passed.
	Again bool
}

// Totals counts a capture.
type Totals struct {
	Frames    int // in the file
	Other     int // frames that are no RoCE
	Merged    int // frames that were cut into several packets
	Packets   int // RoCE packets
	Payload   int64
	Again     int // sent again
	NAKs      int // negative acknowledgements, RNR NAKs included
	CNPs      int
	CE        int // packets marked Congestion Experienced
	BadICRC   int
	Malformed int
	Cut       int // frames that the capture cut, so that no ICRC can be verified
	ByOpcode  map[wire.Opcode]int
	First     time.Time
	Last      time.Time
}

// Wrong returns the number of packets that something is wrong with.
func (t *Totals) Wrong() int { return t.BadICRC + t.Malformed + t.Cut }

// flowKey tells apart what has a sequence of PSNs of its own.
type flowKey struct {
	src, dst ib.GID
	qpn      ib.QPN
	response bool
}

// maxFlows bounds the memory that a file can make the decoder use.
const maxFlows = 1 << 16

// Decode reads a capture to its end and calls each with every RoCE packet; p is
// borrowed. It returns what it counted also with an error, which is about the
// file (ErrFormat) or what each returned.
func Decode(r io.Reader, each func(p *Packet) error) (Totals, error) {
	d := decoder{each: each, next: map[flowKey]ib.PSN{}, totals: Totals{ByOpcode: map[wire.Opcode]int{}}}
	src, err := NewReader(r)
	if err != nil {
		return d.totals, err
	}
	for {
		f, err := src.Next()
		if errors.Is(err, io.EOF) {
			return d.totals, nil
		}
		if err != nil {
			return d.totals, err
		}
		if err := d.frame(&f); err != nil {
			return d.totals, err
		}
	}
}

type decoder struct {
	each   func(*Packet) error
	next   map[flowKey]ib.PSN
	totals Totals
	pkt    Packet
}

func (d *decoder) frame(f *Frame) error {
	d.totals.Frames++
	if d.totals.First.IsZero() {
		d.totals.First = f.Time
	}
	d.totals.Last = f.Time
	b, isIP, ok := f.payload()
	if !ok {
		d.totals.Other++
		return nil
	}
	var env roce.Envelope
	var reason roce.Reason
	if isIP {
		reason = env.DecodeIP(b)
	} else {
		reason = env.Decode(b)
	}
	switch {
	case reason == roce.ReasonNotRoCE:
		d.totals.Other++
		return nil
	case f.Cut > 0:
		d.totals.Cut++
		return d.emit(f, &env, 0, "cut by the capture: ICRC not verified", false)
	case reason != roce.ReasonNone && reason != roce.ReasonBadChecksum:
		d.totals.Malformed++
		return d.emit(f, &roce.Envelope{}, 0, reason.String(), false)
	}
	size := len(env.IB)
	if !env.Verify() {
		if s := env.SegmentSize(); s > 0 {
			size = s
		}
	}
	if size == len(env.IB) {
		return d.packet(f, &env, 0)
	}
	d.totals.Merged++
	segment := 0
	for e := range env.Segments(size) {
		segment++
		if err := d.packet(f, &e, segment); err != nil {
			return err
		}
	}
	return nil
}

// packet judges one packet.
func (d *decoder) packet(f *Frame, env *roce.Envelope, segment int) error {
	if len(env.IB) < wire.ICRCLen {
		d.totals.Malformed++
		return d.emit(f, env, segment, "too short for an ICRC", false)
	}
	reason := d.pkt.IB.Decode(env.IB[:len(env.IB)-wire.ICRCLen])
	bad := ""
	if !env.Verify() {
		bad = "ICRC wrong"
		d.totals.BadICRC++
	} else if reason != wire.ReasonNone {
		bad = "malformed: " + reason.String()
		d.totals.Malformed++
	}
	return d.emit(f, env, segment, bad, reason == wire.ReasonNone)
}

func (d *decoder) emit(f *Frame, env *roce.Envelope, segment int, bad string, decoded bool) error {
	p := &d.pkt
	p.Frame, p.Segment, p.Since = f.Number, segment, f.Time.Sub(d.totals.First)
	p.Envelope, p.Bad, p.Malformed, p.Again = *env, bad, !decoded, false
	d.totals.Packets++
	if decoded {
		d.count(p)
	}
	if env.TOS.ECN() == ip.CE {
		d.totals.CE++
	}
	return d.each(p)
}

func (d *decoder) count(p *Packet) {
	t := &d.totals
	t.ByOpcode[p.IB.Op]++
	t.Payload += int64(len(p.IB.Payload))
	switch {
	case p.IB.Info.Kind == wire.KindCNP:
		t.CNPs++
		return
	case p.IB.Info.Headers.Has(wire.HdrAETH) && p.IB.AETH.Syndrome.Kind() != wire.AckACK:
		t.NAKs++
		return
	case p.Bad != "" || p.IB.Info.Kind == wire.KindAck:
		return
	}
	key := flowKey{p.Src, p.Dst, p.IB.DestQPN, p.IB.Info.Response}
	next, seen := d.next[key]
	if seen && p.IB.PSN.Before(next) {
		p.Again = true
		t.Again++
		return
	}
	if seen || len(d.next) < maxFlows {
		// A READ request takes the PSNs of its responses, whose number depends on
		// the path MTU; counting one is enough to tell what comes again.
		d.next[key] = p.IB.PSN.Add(1)
	}
}
