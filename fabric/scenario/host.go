package scenario

import "github.com/verbena-rdma/verbena/fabric/sim"

// Host is the configuration of a host: its NIC, and how flows that start there
// use it.
type Host struct {
	// RoCE is the version: v1 (EtherType 0x8915, not routed) or v2 (UDP 4791).
	RoCE string `yaml:"roce" enum:"v1|v2"`
	// Tagged says whether frames carry an 802.1Q tag with the priority.
	Tagged bool `yaml:"tagged"`
	// MTU is the path MTU of its queue pairs; 0: the packet's.
	MTU int `yaml:"mtu" min:"0" max:"4096"`
	// NIC has the limits of the device.
	NIC NIC `yaml:"nic"`
	// RDMA has the defaults of flows.
	RDMA RDMA `yaml:"rdma"`
	// DCQCN is the congestion control of queue pairs.
	DCQCN DCQCN `yaml:"dcqcn"`
	// CNP says how notifications are sent.
	CNP CNP `yaml:"cnp"`
	// TCP is the lossy class of workloads with op tcp.
	TCP TCP `yaml:"tcp"`
}

// NIC has the limits of an adapter. 0 means none.
type NIC struct {
	// PacketRate is the packets a second that the NIC can send.
	PacketRate int64 `yaml:"packet_rate" min:"0" max:"1000000000000"`
	// QPRate is what the engine of one queue pair can send.
	QPRate sim.Rate `yaml:"qp_rate" min:"0bps" max:"10Tbps"`
	// RxQueues is the number of receive queues, each with its processing rate.
	RxQueues int `yaml:"rx_queues" min:"1" max:"1024"`
	// RSS says what spreads packets over them: udp (5-tuple), ip (addresses
	// only), off (all in one).
	RSS string `yaml:"rss" enum:"udp|ip|off"`
	// RxRate is what one receive queue can process.
	RxRate sim.Rate `yaml:"rx_rate" min:"0bps" max:"10Tbps"`
	// RxPacketRate is the packets a second that one receive queue can process.
	RxPacketRate int64 `yaml:"rx_packet_rate" min:"0" max:"1000000000000"`
	// PCIeRate is what can move from the NIC to memory: the slow receiver.
	PCIeRate sim.Rate `yaml:"pcie_rate" min:"0bps" max:"10Tbps"`
	// RxBuffer holds what has arrived and is not yet processed.
	RxBuffer Bytes `yaml:"rx_buffer" min:"0B" max:"1GB"`
	// XOFF is the buffer at which the NIC pauses its switch; 0: RxBuffer less
	// the headroom of its link.
	XOFF Bytes `yaml:"xoff" min:"0B" max:"1GB"`
	// XON is the buffer at which it resumes; 0: half of XOFF.
	XON Bytes `yaml:"xon" min:"0B" max:"1GB"`
	// PFC lists the priorities in which the NIC sends and obeys pauses.
	PFC Prios `yaml:"pfc"`
	// Quanta of its pauses.
	Quanta int `yaml:"quanta" min:"1" max:"65535"`
	// ResponseDelay to pauses.
	ResponseDelay sim.Time `yaml:"response_delay" min:"0ns" max:"1ms"`
}

// RDMA has what flows use where a workload says nothing.
type RDMA struct {
	// Service of the queue pairs.
	Service string `yaml:"service" enum:"rc|uc|ud"`
	// Op of the flows.
	Op string `yaml:"op" enum:"write|send|read"`
	// Priority is what the sender's NIC puts them in.
	Priority uint8 `yaml:"priority" min:"0" max:"7"`
	// DSCP of data and acknowledgements.
	DSCP uint8 `yaml:"dscp" min:"0" max:"63"`
	// ECN says whether packets are ECN-capable.
	ECN bool `yaml:"ecn"`
	// TimeoutExp of the local ACK timeout: 4.096 us × 2^n; 0: none (IBA vol.1 9.7.6.1.3).
	TimeoutExp uint8 `yaml:"timeout_exp" min:"0" max:"31"`
	// RetryCnt is how often it is retried.
	RetryCnt uint8 `yaml:"retry_cnt" min:"0" max:"7"`
	// RNRRetry is how often after RNR NAK; 7: for ever.
	RNRRetry uint8 `yaml:"rnr_retry" min:"0" max:"7"`
	// AckEvery is the packets between requests for an acknowledgement.
	AckEvery int `yaml:"ack_every" min:"1" max:"1024"`
	// QPs over which a flow is spread.
	QPs int `yaml:"qps" min:"1" max:"1024"`
	// Message cuts flows into messages of so many bytes; 0: one.
	Message Bytes `yaml:"message" min:"0B" max:"2GiB"`
}

// DCQCN is a preset, with knobs that differ from it under the names of
// mlxconfig or the paper.
type DCQCN struct {
	// Preset: paper, mlx5, hpcc, or off.
	Preset string `yaml:"preset"`
	// Knobs that differ, in the order of the file.
	Knobs []Knob `yaml:"*"`
}

// Off reports whether there is no congestion control.
func (d *DCQCN) Off() bool { return d.Preset == "off" }

// Knob is one parameter of DCQCN.
type Knob struct {
	Name  string
	Value string
}

// CNP says how congestion notifications travel.
type CNP struct {
	// Priority is what the NIC puts them in.
	Priority uint8 `yaml:"priority" min:"0" max:"7"`
	// DSCP they carry.
	DSCP uint8 `yaml:"dscp" min:"0" max:"63"`
}

// TCP is the lossy class.
type TCP struct {
	// Kind of congestion control.
	Kind string `yaml:"kind" enum:"dctcp|reno"`
	// Priority is what the NIC puts it in.
	Priority uint8 `yaml:"priority" min:"0" max:"7"`
	// DSCP it carries.
	DSCP uint8 `yaml:"dscp" min:"0" max:"63"`
	// MSS is the payload of a full segment.
	MSS int `yaml:"mss" min:"64" max:"9000"`
	// InitWindow in segments (RFC 6928).
	InitWindow int `yaml:"init_window" min:"1" max:"1000"`
	// MaxWindow limits the window; 0: none.
	MaxWindow Bytes `yaml:"max_window" min:"0B" max:"1GB"`
	// MinRTO is the least retransmission timeout.
	MinRTO sim.Time `yaml:"min_rto" min:"1us" max:"10s"`
	// G is DCTCP's gain (RFC 8257).
	G Ratio `yaml:"g" min:"1/65536" max:"1"`
}
