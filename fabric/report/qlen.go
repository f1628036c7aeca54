package report

import (
	"io"
	"strconv"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// qlenBin is the width of a bin in bytes.
const qlenBin = 1000

// maxQlenBins bounds a histogram: longer queues (64 MB) count in the last bin.
const maxQlenBins = 1 << 16

// maxQlenBlocks bounds a file: a shorter interval is made longer.
const maxQlenBlocks = 10000

// WriteQlen writes qlen.txt: how often the egress queue of each switch port (all
// its priorities together) had each length, in bins of 1000 bytes. A block
// `time: ns` with a line `node ifIndex count count …` for each port is written
// every so often (0: once, at the end), and at the end; counts are cumulative.
//
// Its data are the series QueueBytes, so the samples are as dense as they are
// recorded: HPCC's simulator samples every 100 ns and writes every 100 ms. Where
// priorities of a port were sampled at different instants, the densest is taken
// and of the others the last value before.
func WriteQlen(w io.Writer, r *result.Run, every sim.Time) error {
	o := newOut(w)
	var ports []*portQueue
	end := sim.Time(-1)
	for i := range r.Series {
		s := &r.Series[i]
		if s.Kind != result.QueueBytes || len(s.Values) == 0 || at(r, s.Node, s.Port) == nil || !r.Nodes[s.Node].Switch {
			continue
		}
		ports = addQueue(ports, s)
		end = max(end, s.Start+sim.Time(len(s.Values)-1)*s.Step)
	}
	if end < 0 {
		return o.Flush()
	}
	if every > 0 {
		every = max(every, end/maxQlenBlocks)
		for t := every; t < end; t += every {
			qlenBlock(o, ports, t)
		}
	}
	qlenBlock(o, ports, end)
	return o.Flush()
}

// portQueue is the queues of a port; the first is sampled most densely.
type portQueue struct {
	node, port int32
	queues     []*result.Series
	done       int // samples counted
	counts     []uint64
}

// addQueue keeps ports in the order of nodes and ports.
func addQueue(ports []*portQueue, s *result.Series) []*portQueue {
	i := len(ports)
	for i > 0 && !before(ports[i-1], s) {
		i--
	}
	if i == len(ports) || ports[i].node != s.Node || ports[i].port != s.Port {
		ports = append(ports, nil)
		copy(ports[i+1:], ports[i:])
		ports[i] = &portQueue{node: s.Node, port: s.Port}
	}
	p := ports[i]
	p.queues = append(p.queues, s)
	if last := len(p.queues) - 1; s.Step < p.queues[0].Step {
		p.queues[0], p.queues[last] = p.queues[last], p.queues[0]
	}
	return ports
}

func before(p *portQueue, s *result.Series) bool {
	return p.node < s.Node || p.node == s.Node && p.port < s.Port
}

// count adds the samples up to and including an instant.
func (p *portQueue) count(until sim.Time) {
	lead := p.queues[0]
	for ; p.done < len(lead.Values); p.done++ {
		t := lead.Start + sim.Time(p.done)*lead.Step
		if t > until {
			return
		}
		bin := (lead.Values[p.done] + p.others(t)) / qlenBin
		bin = max(0, min(bin, maxQlenBins-1))
		for int64(len(p.counts)) <= bin {
			p.counts = append(p.counts, 0)
		}
		p.counts[bin]++
	}
}

func (p *portQueue) others(t sim.Time) (sum int64) {
	for _, s := range p.queues[1:] {
		if t < s.Start {
			continue
		}
		i := 0
		if s.Step > 0 {
			i = int(min((t-s.Start)/s.Step, sim.Time(len(s.Values)-1)))
		}
		sum += s.Values[i]
	}
	return sum
}

func qlenBlock(o out, ports []*portQueue, t sim.Time) {
	_, _ = o.WriteString("time: " + strconv.FormatInt(int64(t/sim.Nanosecond), 10) + "\n")
	c := row{sep: ' '}
	for _, p := range ports {
		p.count(t)
		c.int(int64(p.node)).int(int64(p.port) + 1)
		for _, n := range p.counts {
			c.uint(n)
		}
		c.end(o)
	}
}
