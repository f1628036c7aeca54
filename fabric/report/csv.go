package report

import (
	"io"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// text writes a name as a cell of RFC 4180: quoted if it holds a comma or a
// quote. Line ends and control characters have become U+FFFD before.
func (r *row) text(s string) *row {
	r.next()
	s = clean(s)
	if strings.ContainsAny(s, "\",") || s != strings.TrimSpace(s) {
		s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	r.b = append(r.b, s...)
	return r
}

const flowsHead = "id,group,src,dst,src_port,dst_port,op,service,prio,bytes,state,status," +
	"start_ns,received_ns,finish_ns,fct_ns,base_fct_ns,slowdown,delivered_bytes,goodput_bps," +
	"packets,retransmitted,timeouts,naks,marks,cnps_sent,cnps_handled,min_rate_bps,last_rate_bps," +
	"qps,paths,path,silent\n"

// WriteFlowsCSV writes a line for each flow. Instants that have not come are
// empty. The path is that of the first packet, egress by egress, separated by
// blanks.
func WriteFlowsCSV(w io.Writer, r *result.Run) error {
	o, c, n := newOut(w), row{sep: ','}, names{r}
	_, _ = o.WriteString(flowsHead)
	states := [...]string{"waiting", "running", "finished", "failed"}
	for i := range r.Flows {
		f := &r.Flows[i]
		state := "unknown"
		if int(f.State) < len(states) {
			state = states[f.State]
		}
		c.int(int64(f.ID)).text(f.Group).text(n.node(f.SrcNode)).text(n.node(f.DstNode)).
			int(int64(f.SrcPort)).int(int64(f.DstPort)).text(f.Op).text(f.Service).int(int64(f.Prio)).
			int(f.Bytes).text(state).text(f.Status).
			time(f.Start).time(f.Received).time(f.Finish).time(f.FCT()).time(f.Base).float(f.Slowdown(), 4).
			int(f.Delivered).int(int64(Goodput(r, f))).
			uint(f.Packets).uint(f.Retransmitted).uint(f.Timeouts).uint(f.NAKs).uint(f.Marks).
			uint(f.CNPs).uint(f.CNPsHandled).int(int64(f.MinRate)).int(int64(f.LastRate)).
			int(int64(max(1, f.QPs))).int(int64(f.Paths))
		hops := make([]string, len(f.Path))
		for j, h := range f.Path {
			hops[j] = n.port(h.Node, h.Port)
		}
		c.text(strings.Join(hops, " ")).text(f.Silent).end(o)
	}
	return o.Flush()
}

// prioColumns is how many columns of ports.csv are of one priority.
const prioColumns = 23

const portsHead = "node,port,peer,rate_bps,delay_ns,prio,tx_bytes,rx_bytes,tx_packets,rx_packets," +
	"rx_drops,tx_drops,marked,pfc_xoff_tx,pfc_xoff_rx,pfc_xon_tx,pfc_xon_rx,paused_ns,paused_waiting_ns," +
	"peak_queue_bytes,mean_queue_bytes,kmin_bytes,kmax_bytes,peak_ingress_bytes,peak_headroom_bytes," +
	"wd_detected,wd_restored,wd_dropped,port_tx_busy_ns,port_link_errors,port_down_ns,port_global_pauses\n"

// WritePortsCSV writes a line for each port and priority that has counted
// something, and one without priority for a port that has counted nothing.
// Columns port_* are the whole port's and stand in its first line alone.
func WritePortsCSV(w io.Writer, r *result.Run) error {
	o, c, n := newOut(w), row{sep: ','}, names{r}
	_, _ = o.WriteString(portsHead)
	for i := range r.Nodes {
		for j := range r.Nodes[i].Ports {
			p := &r.Nodes[i].Ports[j]
			first := true
			for prio := range p.Prio {
				q := &p.Prio[prio]
				if *q == (result.PortPrio{}) {
					continue
				}
				c.port(n, r, i, p)
				c.int(int64(prio)).uint(q.TxBytes).uint(q.RxBytes).uint(q.TxPackets).uint(q.RxPackets).
					uint(q.RxDrops).uint(q.TxDrops).uint(q.Marked).
					uint(q.PauseTx).uint(q.PauseRx).uint(q.ResumeTx).uint(q.ResumeRx).
					time(q.PausedFor).time(q.PausedWaiting).
					int(q.PeakQueue).float(q.MeanQueue, 1).int(q.KMin).int(q.KMax).int(q.PeakIngress).int(q.PeakHeadroom).
					uint(q.WatchdogDetected).uint(q.WatchdogRestored).uint(q.WatchdogDropped)
				c.whole(p, first)
				c.end(o)
				first = false
			}
			if first {
				c.port(n, r, i, p)
				c.empty(prioColumns)
				c.whole(p, true)
				c.end(o)
			}
		}
	}
	return o.Flush()
}

func (r *row) port(n names, run *result.Run, node int, p *result.Port) {
	r.text(n.node(int32(node))).text(p.Name)
	if at(run, p.Peer, p.PeerPort) != nil {
		r.text(n.port(p.Peer, p.PeerPort))
	} else {
		r.text("")
	}
	r.int(int64(p.Rate)).time(p.Delay)
}

func (r *row) whole(p *result.Port, first bool) {
	if !first {
		r.empty(4)
		return
	}
	r.time(p.TxBusy).uint(p.LinkErrors).time(p.Down).uint(p.GlobalPauses)
}

// WritePausesCSV writes a line for each change of a pause: who stopped (xoff 1)
// or resumed whom, in order of time.
func WritePausesCSV(w io.Writer, r *result.Run) error {
	o, c, n := newOut(w), row{sep: ','}, names{r}
	_, _ = o.WriteString("time_ns,by_port,stopped_port,prio,xoff,refresh,cause,held_bytes,xoff_limit_bytes,egress,egress_stopped\n")
	causes := [...]string{"buffer", "slow receiver", "storm", "global pause"}
	for i := range r.Pauses {
		p := &r.Pauses[i]
		cause := "unknown"
		if int(p.Cause) < len(causes) {
			cause = causes[p.Cause]
		}
		stopped, egress := "", ""
		if q := at(r, p.Node, p.Port); q != nil && q.Peer >= 0 {
			stopped = n.port(q.Peer, q.PeerPort)
		}
		if p.Egress >= 0 {
			egress = n.port(p.Node, p.Egress)
		}
		c.time(p.At).text(n.port(p.Node, p.Port)).text(stopped).int(int64(p.Prio)).bool(p.On).bool(p.Refresh).
			text(cause).int(p.Held).int(p.Limit).text(egress).bool(p.EgressStopped).end(o)
	}
	return o.Flush()
}

// WriteDropsCSV writes a line for each packet that was lost, in order of time.
func WriteDropsCSV(w io.Writer, r *result.Run) error {
	o, c, n := newOut(w), row{sep: ','}, names{r}
	_, _ = o.WriteString("time_ns,node,ingress,flow,prio,reason,frame_bytes\n")
	for i := range r.Drops {
		d := &r.Drops[i]
		ingress := ""
		if d.Port >= 0 {
			ingress = n.port(d.Node, d.Port)
		}
		c.time(d.At).text(n.node(d.Node)).text(ingress).int(int64(d.Flow)).int(int64(d.Prio)).
			text(d.Reason.String()).int(int64(d.Bytes)).end(o)
	}
	return o.Flush()
}

// WriteSeriesCSV writes a line for each sample of each series, one series
// behind the other.
func WriteSeriesCSV(w io.Writer, r *result.Run) error {
	o, c, n := newOut(w), row{sep: ','}, names{r}
	_, _ = o.WriteString("kind,unit,of,prio,time_ns,value\n")
	var head []byte
	for i := range r.Series {
		s := &r.Series[i]
		k := kindOf(s.Kind)
		c.text(k.name).text(k.unit).text(n.series(s))
		if s.Kind == result.QueueBytes || s.Kind == result.PausedShare {
			c.int(int64(s.Prio))
		} else {
			c.text("")
		}
		head = append(head[:0], c.b...)
		for j, v := range s.Values {
			c.b, c.begun = append(c.b[:0], head...), true
			c.time(s.Start + sim.Time(j)*s.Step).int(v).end(o)
		}
		c.b, c.begun = c.b[:0], false
	}
	return o.Flush()
}

// kind is how a series is called, and in what it is counted.
type kind struct{ name, unit string }

func kindOf(k result.SeriesKind) kind {
	switch k {
	case result.QueueBytes:
		return kind{"queue", "bytes"}
	case result.PortRate:
		return kind{"port rate", "bit/s"}
	case result.FlowRate:
		return kind{"flow goodput", "bit/s"}
	case result.FlowRC:
		return kind{"R_C", "bit/s"}
	case result.FlowAlpha:
		return kind{"alpha", "2^-32"}
	case result.MarkRate:
		return kind{"CE marks", "packets"}
	case result.CNPRate:
		return kind{"CNPs", "packets"}
	case result.PausedShare:
		return kind{"paused", "ps"}
	case result.BufferShared:
		return kind{"shared buffer", "bytes"}
	case result.HostQueue:
		return kind{"NIC receive buffer", "bytes"}
	default:
		return kind{"unknown", ""}
	}
}

// series names what a series is of.
func (n names) series(s *result.Series) string {
	switch s.Kind {
	case result.BufferShared, result.HostQueue:
		return n.node(s.Node)
	default:
		if s.Flow >= 0 {
			return n.flow(s.Flow)
		}
		return n.port(s.Node, s.Port)
	}
}
