package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Files as HPCC's simulator writes them, so that its users' scripts read ours.
// Its node numbers are places in the topology file, which are places in
// Run.Nodes; its interface 0 is the loopback, so port 0 is interface 1. Times
// are whole nanoseconds, rounded down.

// hpccAddress returns the IPv4 address that HPCC's simulator gives to a node:
// 11.x.y.1 with x and y the number's two lower bytes.
func hpccAddress(node int32) uint32 {
	id := uint32(node)
	return 0x0b000001 + (id/256)<<16 + (id%256)<<8
}

// WriteFCT writes fct.txt: for each finished flow, in the order in which they
// finished, `sip dip sport dport size start_ns fct_ns standalone_fct_ns` with
// addresses in hexadecimal.
func WriteFCT(w io.Writer, r *result.Run) error {
	var done []*result.Flow
	for i := range r.Flows {
		if r.Flows[i].State == result.Finished {
			done = append(done, &r.Flows[i])
		}
	}
	slices.SortStableFunc(done, func(a, b *result.Flow) int { return cmp.Compare(a.Finish, b.Finish) })
	o := newOut(w)
	for _, f := range done {
		fmt.Fprintf(o, "%08x %08x %d %d %d %d %d %d\n", hpccAddress(f.SrcNode), hpccAddress(f.DstNode),
			f.SrcPort, f.DstPort, f.Bytes, f.Start/sim.Nanosecond, f.FCT()/sim.Nanosecond, f.Base/sim.Nanosecond)
	}
	return o.Flush()
}

// pfcFrame is the length of a PFC or PAUSE frame in bytes; the preamble of 8
// goes ahead of it where it counts.
const pfcFrame = 64

// WritePFC writes pfc.txt: `time_ns node nodeType ifIndex type` for each PFC
// frame, logged where it arrives: nodeType 1 is a switch, type 1 stops and 0
// resumes. Frames that repeat a stop are left out: HPCC's simulator sends none,
// and scripts pair a 1 with the next 0.
//
// The time is that of the decision, plus the frame's length and the link's
// delay. A frame that had to wait for one on the wire came up to a frame later.
func WritePFC(w io.Writer, r *result.Run) error {
	type line struct {
		at         sim.Time
		node, port int32
		on         bool
	}
	var lines []line
	n := pfcFrame
	if r.Shape.Gap > 0 {
		n += 8
	}
	for i := range r.Pauses {
		p := &r.Pauses[i]
		from := at(r, p.Node, p.Port)
		if p.Refresh || from == nil || at(r, from.Peer, from.PeerPort) == nil {
			continue
		}
		lines = append(lines, line{p.At.Add(from.Rate.For(n)).Add(from.Delay), from.Peer, from.PeerPort, p.On})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	o := newOut(w)
	for _, l := range lines {
		fmt.Fprintf(o, "%d %d %d %d %d\n", l.at/sim.Nanosecond, l.node, b2i(r.Nodes[l.node].Switch), l.port+1, b2i(l.on))
	}
	return o.Flush()
}
