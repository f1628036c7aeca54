package truth

import (
	"fmt"
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/theory"
	"github.com/verbena-rdma/verbena/fabric/work"
)

var baseSizes = []int64{1, 1000, 1001, 1500, 123_456, 1_000_000}

// alone runs one flow and checks its completion time, and what the result says
// an idle network would take: the frames there and one acknowledgement back.
func alone(t *testing.T, r rig, dst int32, size, want, base int64) {
	t.Helper()
	res := r.run(t, []work.Flow{write(0, dst, size, "x")})
	f := &res.Flows[0]
	if int64(f.FCT()) != want || int64(f.Base) != base {
		t.Errorf("%d B: completion %d ps, want %d; base %d ps, want %d", size, int64(f.FCT()), want, int64(f.Base), base)
	}
}

// A1a–A1e, A1g: what the formula says, to the picosecond.
func TestA1BaseByFormula(t *testing.T) {
	withGap := theory.Packets{Payload: 1000, Header: 48 + gap}
	up := func(rate int64) theory.Path {
		p := path(4, 100*sim.Gbps, sim.Microsecond)
		p.Hops[1].Rate, p.Hops[2].Rate = rate, rate
		return p
	}
	cut := func(p theory.Path, head int64) theory.Path { p.CutThrough = head; return p }
	star, t32 := path(2, 100*sim.Gbps, sim.Microsecond), path(4, 100*sim.Gbps, sim.Microsecond)
	late := func(rate sim.Rate) theory.Path {
		p := path(4, rate, sim.Microsecond)
		for i := range 3 {
			p.Hops[i].Delay += 300 * int64(sim.Nanosecond) // of the switch behind it
		}
		return p
	}
	for _, c := range []struct {
		row, base, sets string
		path            theory.Path
		packets         theory.Packets
		ack             int64
	}{
		{"A1a", "star", "", star, hpccPackets, hpccAck},
		{"A1b", "t32", "", t32, hpccPackets, hpccAck},
		{"A1c", "t32", "packet.gap=true", t32, withGap, hpccAck + gap},
		{"A1d 400G", "t32", "topology.uplink_rate=400Gbps", up(400e9), hpccPackets, hpccAck},
		{"A1d 25G", "t32", "topology.uplink_rate=25Gbps", up(25e9), hpccPackets, hpccAck},
		{"A1e star", "star", "switch.mode=cut-through", cut(star, 64), hpccPackets, hpccAck},
		{"A1e t32", "t32", "switch.mode=cut-through", cut(t32, 64), hpccPackets, hpccAck},
		{"A1e gap", "t32", "switch.mode=cut-through packet.gap=true", cut(t32, 64+gap), withGap, hpccAck + gap},
		{"A1g 40G", "t32", "topology.rate=40Gbps switch.latency=300ns", late(40 * sim.Gbps), hpccPackets, hpccAck},
		{"A1g 400G", "t32", "topology.rate=400Gbps switch.latency=300ns", late(400 * sim.Gbps), hpccPackets, hpccAck},
	} {
		t.Run(c.row, func(t *testing.T) {
			dst := int32(1)
			if c.base == "t32" {
				dst = 8
			}
			for _, size := range baseSizes {
				r := load(t, c.base, append(sets("%s", c.sets), `host.dcqcn.preset="off"`)...)
				base := c.path.Delivery(c.packets, size) + ackTime(c.path, c.ack)
				want, same := completion(c.path, framesOf(size, c.packets.Payload, c.packets.Header, 0, false), c.ack, c.path.CutThrough)
				if same != base {
					t.Fatalf("%d B: the formula gives %d ps, the recurrence %d", size, base, same)
				}
				// Each packet is acknowledged: the last acknowledgement waits for the
				// one before it if it comes sooner behind it than that one takes.
				if c.packets.Last(size) >= c.ack && want != base {
					t.Fatalf("%d B: an acknowledgement waits: %d ps instead of %d", size, want, base)
				}
				alone(t, r, dst, size, want, base)
			}
		})
	}
}

// ackTime is how long an acknowledgement takes back over a path. The latency of
// a switch is in the delay of the hop before it on the way there; on the way
// back it is the same sum.
func ackTime(p theory.Path, ack int64) int64 {
	return p.Reverse().Delivery(theory.Packets{Payload: ack}, ack)
}

// crossing is when the last bit of each frame has crossed links, by the
// recurrence that defines store-and-forward: a frame leaves when it is there and
// the one before it has left. release is when each may begin; nil: at once. cut,
// if not 0, is how many bytes of a frame a switch must have that passes it on
// before its end: it does so when the link is free then and not faster than the
// one before.
func crossing(p theory.Path, frames, release []int64, cut int64) []int64 {
	free := make([]int64, len(p.Hops)) // when each link is free
	ends := make([]int64, len(frames))
	for i, n := range frames {
		var head, tail, before int64
		if release != nil {
			tail = release[i]
		}
		for h, hop := range p.Hops {
			tx := theory.Serialise(n, hop.Rate)
			start := max(tail, free[h])
			if cut > 0 && h > 0 && hop.Rate <= before && free[h] <= head {
				start = head
			}
			free[h] = max(start+tx, tail)
			head = start + theory.Serialise(min(cut, n), hop.Rate) + hop.Delay
			tail = free[h] + hop.Delay
			before = hop.Rate
		}
		ends[i] = tail
	}
	return ends
}

// completion is when the last of the acknowledgements is back, one for each
// frame, and when it would be if it were the only one.
func completion(p theory.Path, frames []int64, ack, cut int64) (want, base int64) {
	there := crossing(p, frames, nil, cut)
	acks := slices.Repeat([]int64{ack}, len(frames))
	n := len(frames) - 1
	base = there[n] + crossing(p.Reverse(), acks[:1], nil, cut)[0]
	return crossing(p.Reverse(), acks, there, cut)[n], base
}

// A1e: cut-through where links differ.
func TestA1CutThroughMixedRates(t *testing.T) {
	for _, up := range []sim.Rate{25 * sim.Gbps, 400 * sim.Gbps} {
		p := path(4, 100*sim.Gbps, sim.Microsecond)
		p.Hops[1].Rate, p.Hops[2].Rate = int64(up), int64(up)
		for _, size := range baseSizes {
			r := load(t, "t32", "switch.mode=cut-through", fmt.Sprintf("topology.uplink_rate=%dGbps", up/sim.Gbps), `host.dcqcn.preset="off"`)
			want, base := completion(p, framesOf(size, 1000, 48, 0, false), hpccAck, 64)
			alone(t, r, 8, size, want, base)
		}
	}
}

// framesOf is the frames of a WRITE, with what each costs on the link. first is
// what the first has besides; pad says that payloads are padded to 4 bytes.
func framesOf(size, payload, header, first int64, pad bool) []int64 {
	var all []int64
	for i := int64(0); i == 0 || size > 0; i++ {
		n := min(size, payload)
		size -= n
		if pad {
			n = (n + 3) / 4 * 4
		}
		n += header
		if i == 0 {
			n += first
		}
		all = append(all, n)
	}
	return all
}

// A1f: real headers. Ethernet 14 + IPv4 20 + UDP 8 + BTH 12 + ICRC 4 + FCS 4 =
// 62, RETH 16 in the first packet; an acknowledgement has an AETH of 4.
func TestA1RealHeaders(t *testing.T) {
	for _, mtu := range []int64{1024, 4096} {
		for _, mode := range []string{"store-and-forward", "cut-through"} {
			for _, c := range []struct {
				base string
				dst  int32
				hops int
			}{{"star", 1, 2}, {"t32", 8, 4}} {
				p := path(c.hops, 100*sim.Gbps, sim.Microsecond)
				cut := int64(0)
				if mode == "cut-through" {
					cut = 64 + gap
				}
				for _, size := range baseSizes {
					r := load(t, c.base, fmt.Sprintf("packet.mtu=%d", mtu), "packet.payload=0", "packet.header=-1", "packet.control=0", "packet.gap=true",
						"switch.mode="+mode, `host.dcqcn.preset="off"`)
					want, base := completion(p, framesOf(size, mtu, 62+gap, 16, true), 66+gap, cut)
					alone(t, r, c.dst, size, want, base)
				}
			}
		}
	}
}

// A1h: a SEND has no RETH; a READ is asked for by a frame with one, and its first
// and last response have an AETH.
func TestA1SendAndRead(t *testing.T) {
	p := path(4, 100*sim.Gbps, sim.Microsecond)
	for _, size := range baseSizes {
		data := framesOf(size, 1024, 62+gap, 0, true)
		send, sendBase := completion(p, data, 66+gap, 0)

		data[0] += 4
		if n := len(data) - 1; n > 0 {
			data[n] += 4
		}
		read := crossing(p, []int64{78 + gap}, nil, 0)[0] + crossing(p, data, nil, 0)[len(data)-1]
		for _, c := range []struct {
			op         work.Op
			want, base int64
		}{{work.Send, send, sendBase}, {work.Read, read, read}} {
			r := load(t, "t32", "packet.payload=0", "packet.header=-1", "packet.control=0", "packet.gap=true", `host.dcqcn.preset="off"`)
			f := write(0, 8, size, "x")
			f.Op = c.op
			res := r.run(t, []work.Flow{f})
			if got := &res.Flows[0]; int64(got.FCT()) != c.want || int64(got.Base) != c.base {
				t.Errorf("%v of %d B: completion %d ps, want %d; base %d ps, want %d", c.op, size, int64(got.FCT()), c.want, int64(got.Base), c.base)
			}
		}
	}
}
