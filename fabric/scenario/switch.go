package scenario

import "github.com/verbena-rdma/verbena/fabric/sim"

// Switch is the configuration of a switch.
type Switch struct {
	// Mode of forwarding.
	Mode Mode `yaml:"mode" enum:"store-and-forward|cut-through"`
	// Latency from the last bit in (store and forward) or the header in (cut
	// through) to the queue at the egress.
	Latency sim.Time `yaml:"latency" min:"0ns" max:"1ms"`
	// MTU is the longest frame, destination MAC to FCS; longer ones are dropped.
	MTU int `yaml:"mtu" min:"64" max:"65535"`
	// Trust says where the priority of a packet is from; PCP of an untagged
	// frame is 0.
	Trust Trust `yaml:"trust" enum:"dscp|pcp"`
	// PCPMap gives the priority of an 802.1Q tag's. Those not named: itself.
	PCPMap PrioMap `yaml:"pcp_map"`
	// DSCPMap gives the priority of a code point. Those not named: DSCP / 8.
	DSCPMap DSCPMap `yaml:"dscp_map"`
	// GroupMap gives the ingress priority group of a priority. Those not named: itself.
	GroupMap PrioMap `yaml:"prio_group_map"`
	// Buffer is the shared memory.
	Buffer Buffer `yaml:"buffer"`
	// Scheduler of every egress.
	Scheduler Scheduler `yaml:"scheduler"`
	// ECN is the marking at every egress.
	ECN ECN `yaml:"ecn"`
	// PFC is priority flow control.
	PFC PFC `yaml:"pfc"`
	// ECMP chooses among equal paths.
	ECMP ECMP `yaml:"ecmp"`
}

// Mode is how a switch forwards.
type Mode string

// The modes.
const (
	StoreAndForward Mode = "store-and-forward"
	CutThrough      Mode = "cut-through"
)

// Trust is the field that decides a packet's priority.
type Trust string

// The fields.
const (
	TrustDSCP Trust = "dscp"
	TrustPCP  Trust = "pcp"
)

// Buffer divides a switch's memory. An ingress priority group may hold
// reserved + alpha × unused shared memory before XOFF (or before a drop, without
// PFC), and a lossless one its headroom beyond that.
type Buffer struct {
	// Preset sets total and cell to those of a switch ASIC, or all to those
	// of "hpcc": 32 MiB at 100 Gb/s, in proportion to topology.rate. What the file
	// gives beside it holds.
	Preset string `yaml:"preset"`
	// Total memory. 0: without limit.
	Total Bytes `yaml:"total" min:"0B" max:"256GB"`
	// Cell is the unit of allocation: a packet takes whole cells. 1: bytes.
	Cell Bytes `yaml:"cell" min:"1B" max:"16KB"`
	// Reserved bytes of each ingress port and priority group in use.
	Reserved Bytes `yaml:"reserved" min:"0B" max:"1GB"`
	// Alpha of the dynamic threshold of lossless groups: XOFF = reserved +
	// alpha × unused shared memory.
	Alpha Ratio `yaml:"alpha" min:"1/1024" max:"64"`
	// ScaleAlpha doubles alpha with each doubling of a port's rate above the
	// slowest port of the switch (SIGCOMM'19 HPCC's simulator).
	ScaleAlpha bool `yaml:"scale_alpha"`
	// LossyAlpha is that of groups without PFC, beyond which packets are dropped.
	LossyAlpha Ratio `yaml:"lossy_alpha" min:"1/1024" max:"64"`
	// AlphaBy is that of single priorities.
	AlphaBy PrioRatios `yaml:"alpha_by_priority" min:"1/1024" max:"64"`
	// EgressAlpha limits what one egress queue of a lossy priority may hold of
	// the shared memory; 0: no limit but the ingress's.
	EgressAlpha Ratio `yaml:"egress_alpha" min:"0" max:"64"`
	// EgressReserved is what such a queue may hold in any case.
	EgressReserved Bytes `yaml:"egress_reserved" min:"0B" max:"1GB"`
	// Headroom of each port and lossless group: auto (802.1Qbb's terms for the
	// link), hpcc (3 × rate × delay), conweave (2 × rate × delay + 2 MTU), or bytes.
	Headroom Headroom `yaml:"headroom"`
	// HeadroomByRate gives headroom for ports of a rate, in place of the above.
	HeadroomByRate []RateHeadroom `yaml:"headroom_by_rate" items:"64"`
	// HeadroomPool is what all headrooms share; 0: their sum.
	HeadroomPool Bytes `yaml:"headroom_pool" min:"0B" max:"256GB"`
	// XOFF is a static threshold in place of the dynamic one; 0: dynamic.
	XOFF Bytes `yaml:"xoff" min:"0B" max:"256GB"`
	// XON is the least threshold of resuming.
	XON Bytes `yaml:"xon" min:"0B" max:"1GB"`
	// XONOffset is how far below XOFF a group resumes.
	XONOffset Bytes `yaml:"xon_offset" min:"0B" max:"1GB"`
}

// HeadroomRule says how headroom is found.
type HeadroomRule string

// The rules.
const (
	HeadroomAuto     HeadroomRule = "auto"
	HeadroomHPCC     HeadroomRule = "hpcc"
	HeadroomConweave HeadroomRule = "conweave"
	HeadroomBytes    HeadroomRule = "bytes"
)

// Headroom is a rule, or bytes for each port and lossless group.
type Headroom struct {
	Rule  HeadroomRule
	Bytes Bytes // of HeadroomBytes
}

// RateHeadroom is the headroom of ports of a rate.
type RateHeadroom struct {
	// Rate of the port.
	Rate sim.Rate `yaml:"rate" min:"1Mbps" max:"10Tbps"`
	// Headroom of such ports.
	Headroom Headroom `yaml:"headroom"`
}

// Scheduler is strict priority first, then deficit round robin by weight
// (802.1Qaz ETS).
type Scheduler struct {
	// Strict priorities, the highest number first.
	Strict Prios `yaml:"strict"`
	// Weights of the others. Those not named: 1.
	Weights Weights `yaml:"weights" min:"1" max:"1000"`
	// Quantum of weight 1 in a round; 0: so that the least weight sends a full frame.
	Quantum Bytes `yaml:"quantum" min:"0B" max:"1MB"`
}

// ECN is WRED with marking: probability 0 up to Kmin, rising to Pmax at Kmax, 1
// above (SIGCOMM'15 DCQCN §3, CP).
type ECN struct {
	// Priorities in which it works.
	Priorities Prios `yaml:"priorities"`
	// KMin is the queue at which marking begins.
	KMin Bytes `yaml:"kmin" min:"0B" max:"256GB"`
	// KMax is the queue at which it is Pmax.
	KMax Bytes `yaml:"kmax" min:"0B" max:"256GB"`
	// PMax is the probability there.
	PMax Ratio `yaml:"pmax" min:"0" max:"1"`
	// At says whether the queue is looked at when a packet comes or goes.
	At MarkAt `yaml:"at" enum:"enqueue|dequeue"`
	// DropNotECT says that packets of lossy priorities that are not ECN-capable
	// are dropped where others would be marked (WRED).
	DropNotECT bool `yaml:"drop_not_ect"`
	// ByRate gives thresholds for ports of a rate, in place of the above.
	ByRate []RateMark `yaml:"by_rate" items:"64"`
	// ByPriority gives thresholds for a priority, in place of all others.
	ByPriority []PrioMark `yaml:"by_priority" items:"8"`
}

// MarkAt is the moment at which the queue decides.
type MarkAt string

// The moments.
const (
	AtEnqueue MarkAt = "enqueue"
	AtDequeue MarkAt = "dequeue"
)

// Mark is one set of thresholds.
type Mark struct {
	KMin, KMax Bytes
	PMax       Ratio
}

// RateMark is the thresholds of ports of a rate.
type RateMark struct {
	// Rate of the port.
	Rate sim.Rate `yaml:"rate" min:"1Mbps" max:"10Tbps"`
	// KMin of such ports.
	KMin Bytes `yaml:"kmin" min:"0B" max:"256GB"`
	// KMax of such ports.
	KMax Bytes `yaml:"kmax" min:"0B" max:"256GB"`
	// PMax of such ports.
	PMax Ratio `yaml:"pmax" min:"0" max:"1"`
}

// PrioMark is the thresholds of a priority.
type PrioMark struct {
	// Priority it holds for.
	Priority uint8 `yaml:"priority" min:"0" max:"7"`
	// KMin of this priority.
	KMin Bytes `yaml:"kmin" min:"0B" max:"256GB"`
	// KMax of this priority.
	KMax Bytes `yaml:"kmax" min:"0B" max:"256GB"`
	// PMax of this priority.
	PMax Ratio `yaml:"pmax" min:"0" max:"1"`
}

func (m *RateMark) setDefaults() { m.PMax = One }
func (m *PrioMark) setDefaults() { m.PMax = One }

// For returns the thresholds of a priority at a port, and whether it marks.
func (e *ECN) For(prio uint8, rate sim.Rate) (Mark, bool) {
	if !e.Priorities.Has(prio) {
		return Mark{}, false
	}
	for _, m := range e.ByPriority {
		if m.Priority == prio {
			return Mark{m.KMin, m.KMax, m.PMax}, true
		}
	}
	for _, m := range e.ByRate {
		if m.Rate == rate {
			return Mark{m.KMin, m.KMax, m.PMax}, true
		}
	}
	return Mark{e.KMin, e.KMax, e.PMax}, true
}

// PFC is 802.1Qbb, or 802.3x where the whole port is stopped.
type PFC struct {
	// Priorities that are lossless.
	Priorities Prios `yaml:"priorities"`
	// Quanta of a pause, 512 bit times each; it is refreshed before it expires.
	Quanta int `yaml:"quanta" min:"1" max:"65535"`
	// ResponseDelay from the last bit of a pause frame to the end of the last
	// frame that is not already being sent.
	ResponseDelay sim.Time `yaml:"response_delay" min:"0ns" max:"1ms"`
	// GlobalPause stops the whole port (802.3x) in place of a priority.
	GlobalPause bool `yaml:"global_pause"`
	// Watchdog looks for egresses that stay stopped.
	Watchdog Watchdog `yaml:"watchdog"`
}

// Watchdog is the PFC watchdog of a switch: an egress queue that is stopped
// for Detect and has something to send is taken out until it has not been
// stopped for Restore.
type Watchdog struct {
	// On says whether there is one.
	On bool `yaml:"enable"`
	// Detect is how long an egress is stopped before it steps in.
	Detect sim.Time `yaml:"detect" min:"1us" max:"100s"`
	// Restore is how long it must not be stopped before all is as before.
	Restore sim.Time `yaml:"restore" min:"1us" max:"100s"`
	// Action is what it does meanwhile: drop what waits and comes for the queue,
	// forward in spite of the pause, or alert only.
	Action string `yaml:"action" enum:"drop|forward|alert"`
}

// ECMP chooses one of equal next hops by a hash.
type ECMP struct {
	// Seed of the hash: per-switch, same (every switch hashes alike: the
	// choices of two tiers depend on each other), or a number, the same for all.
	Seed ECMPSeed `yaml:"seed"`
	// Fields that are hashed: 5-tuple, or ip (addresses only).
	Fields string `yaml:"fields" enum:"5-tuple|ip"`
}

// ECMPSeed is where a switch's hash seed is from.
type ECMPSeed struct {
	PerSwitch bool   // from the scenario's seed and the switch's name
	Value     uint32 // of all switches, if not
}
