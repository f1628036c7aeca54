package scenario

import "github.com/verbena-rdma/verbena/fabric/sim"

// Record says what is kept of a run.
type Record struct {
	// Interval of samples; 0: chosen so that a run has about 1,000.
	Interval sim.Time `yaml:"interval" min:"0ns" max:"1000s"`
	// Series that are sampled: queue, port-rate, flow-rate, rc, alpha, marks,
	// cnps, paused, buffer, host-queue; all; none.
	Series Select `yaml:"series"`
	// Ports of which series are kept, patterns like leaf0/*; none given: those
	// on which something happened.
	Ports Select `yaml:"ports"`
	// Flows (names of workloads) of which series are kept; none given: the
	// first 64 flows.
	Flows Select `yaml:"flows"`
	// PCAP lists ports whose frames are captured.
	PCAP Select `yaml:"pcap"`
	// PCAPPackets limits a capture.
	PCAPPackets int64 `yaml:"pcap_packets" min:"1" max:"1000000000"`
	// MaxPauses limits the pauses that are kept one by one.
	MaxPauses int `yaml:"max_pauses" min:"0" max:"100000000"`
	// MaxDrops limits the drops that are kept one by one.
	MaxDrops int `yaml:"max_drops" min:"0" max:"100000000"`
	// MaxSamples limits the values of one series.
	MaxSamples int `yaml:"max_samples" min:"1" max:"10000000"`
}

// Expect is a number that the run must show.
type Expect struct {
	// What is the metric: flow.long.goodput, flow.incast.fct.max, pauses,
	// drops.lossless, deadlocks, queue.leaf0.Ethernet3.p3.max, ...
	What string `yaml:"what"`
	// Min is the least value.
	Min Quantity `yaml:"min"`
	// Max is the greatest.
	Max Quantity `yaml:"max"`
	// Near is the value, within the share below.
	Near Quantity `yaml:"near"`
	// Within is how far from near it may be.
	Within Ratio `yaml:"within" min:"0" max:"1000"`
	// Source is the formula or the publication that the number is from.
	Source string `yaml:"source"`
}
