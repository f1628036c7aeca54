package fabric

import (
	"fmt"
	"io"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// CaptureOptions say how much of a frame is kept.
type CaptureOptions struct {
	// Full keeps whole frames: payload, which a run knows the length of alone, as
	// zeros, and the ICRC or checksum that belongs to them. Otherwise frames are
	// cut behind their headers, and only those without payload have their ICRC.
	Full bool
}

// Capture writes what passes ports into pcapng files, one for each port, one
// packet for each frame, as tshark reads it. The clock of a file is virtual time
// from 1970-01-01 on, in whole nanoseconds, rounded down: a frame that leaves
// has the instant at which it begins to, one that arrives that at which the port
// hands it on.
//
// A frame is written with the headers that it would have: a scenario's own
// header and control bytes are not in it. Frames without the FCS, as everywhere.
type Capture struct {
	files []*captureFile
	err   error
}

type captureFile struct {
	c       *Capture
	name    string
	ng      *pcapgo.NgWriter
	left    int64  // frames that it may still have
	seen    uint64 // frames that passed
	written uint64
	framer  framer
}

// maxCaptures is how many ports may be captured at a time.
const maxCaptures = 1024

// Capture begins to capture the ports that the scenario names in record.pcap.
// open is called once for each, with the port's name ("leaf0/Ethernet3"), and
// returns where its file goes; that stays the caller's to close, after
// [Capture.Flush]. If Capture returns an error nothing is captured.
func (r *Run) Capture(open func(port string) (io.Writer, error), opt CaptureOptions) (*Capture, error) {
	c := &Capture{}
	refs, err := r.capturedPorts(r.Scenario.Record.PCAP)
	if err != nil {
		return nil, err
	}
	for _, h := range refs {
		f, err := r.openCapture(c, h, open, opt)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, f)
	}
	for i, h := range refs {
		r.Ports[h.node][h.port].Tap = c.files[i].tap(r.Ports[h.node][h.port])
	}
	return c, nil
}

// portRef names a port.
type portRef struct{ node, port int32 }

// capturedPorts finds the ports of a selection, in the graph's order. The name of
// a node stands for all of its ports.
func (r *Run) capturedPorts(sel scenario.Select) ([]portRef, error) {
	var refs []portRef
	found := make([]bool, len(sel))
	for node := range r.Ports {
		for i := range r.Ports[node] {
			name := r.portName(int32(node), int32(i))
			named := false
			for k := range sel {
				if one := sel[k : k+1]; one.Matches(r.Graph.Nodes[node].Name) || one.Matches(name) {
					named, found[k] = true, true
				}
			}
			if named {
				refs = append(refs, portRef{int32(node), int32(i)})
			}
		}
	}
	for k := range sel {
		if !found[k] {
			return nil, fmt.Errorf("record.pcap: no port is named like %q", sel[k])
		}
	}
	if len(refs) > maxCaptures {
		return nil, fmt.Errorf("record.pcap: %d ports are named, at most %d can be captured", len(refs), maxCaptures)
	}
	return refs, nil
}

// portName is the name of a port with that of its node: "leaf0/Ethernet3".
func (r *Run) portName(node, port int32) string {
	return r.Graph.Nodes[node].Name + "/" + r.Graph.PortName(node, port)
}

func (r *Run) openCapture(c *Capture, h portRef, open func(string) (io.Writer, error), opt CaptureOptions) (*captureFile, error) {
	g := r.Graph
	name := r.portName(h.node, h.port)
	w, err := open(name)
	if err != nil {
		return nil, fmt.Errorf("capture %s: %w", name, err)
	}
	// Nothing of this machine is in the file: two runs of a seed write the same.
	opts := pcapgo.DefaultNgWriterOptions
	opts.SectionInfo = pcapgo.NgSectionInfo{Application: "Verbena"}
	ng, err := pcapgo.NewNgWriterInterface(w, pcapgo.NgInterface{
		Name: name, Description: r.Scenario.Name, LinkType: layers.LinkTypeEthernet, TimestampResolution: 9,
	}, opts)
	if err != nil {
		return nil, fmt.Errorf("capture %s: %w", name, err)
	}
	peer := g.Nodes[h.node].Ports[h.port]
	f := &captureFile{c: c, name: name, ng: ng, left: r.Scenario.Record.PCAPPackets}
	f.framer = framer{
		g: g, full: opt.Full, routed: r.Scenario.Topology.Subnets == scenario.SubnetPerLeaf,
		here: portMAC(g, h.node, h.port), there: portMAC(g, peer.Peer, peer.PeerPort),
	}
	return f, nil
}

// tap returns what a port tells of its frames.
func (f *captureFile) tap(p *port.Port) func(sim.Time, *sim.Packet, bool) {
	before := p.Tap
	return func(now sim.Time, k *sim.Packet, out bool) {
		if before != nil {
			before(now, k, out)
		}
		f.frame(now, k, out)
	}
}

// frame writes one frame.
func (f *captureFile) frame(now sim.Time, k *sim.Packet, out bool) {
	f.seen++
	if f.left == 0 || f.c.err != nil {
		return
	}
	f.left--
	data, length := f.framer.frame(k, out)
	opts := pcapgo.NgPacketOptions{Flags: &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionInbound}}
	if out {
		opts.Flags.Direction = pcapgo.NgEpbFlagDirectionOutbound
	}
	if k.Bad {
		opts.Comments = []string{"corrupted on a link"}
	}
	err := f.ng.WritePacketWithOptions(gopacket.CaptureInfo{
		Timestamp: time.Unix(0, int64(now/sim.Nanosecond)), CaptureLength: len(data), Length: length,
	}, data, opts)
	if err != nil {
		f.c.err = fmt.Errorf("capture %s: %w", f.name, err)
		return
	}
	f.written++
}

// Flush writes what is still in memory, and how many frames the limit of
// record.pcap_packets kept out, to the files. It returns the first error that
// any of them had; after one nothing is captured any more.
func (c *Capture) Flush() error {
	for _, f := range c.files {
		if c.err != nil {
			break
		}
		if missed := f.seen - f.written; missed > 0 {
			f.fail(f.ng.WriteInterfaceStats(0, pcapgo.NgInterfaceStatistics{PacketsReceived: f.seen, PacketsDropped: missed}))
		}
		f.fail(f.ng.Flush())
	}
	return c.err
}

func (f *captureFile) fail(err error) {
	if err != nil && f.c.err == nil {
		f.c.err = fmt.Errorf("capture %s: %w", f.name, err)
	}
}

// Packets returns how many frames were written, and how many were not because
// of record.pcap_packets.
func (c *Capture) Packets() (written, missed uint64) {
	for _, f := range c.files {
		written += f.written
		missed += f.seen - f.written
	}
	return written, missed
}
