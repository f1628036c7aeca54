package scenario

import "github.com/verbena-rdma/verbena/fabric/sim"

// Traffic names a generator of flows.
type Traffic string

// The generators.
const (
	Incast        Traffic = "incast"
	Permutation   Traffic = "permutation"
	AllToAll      Traffic = "all-to-all"
	AllReduceRing Traffic = "all-reduce-ring"
	AllReduceTree Traffic = "all-reduce-tree"
	Poisson       Traffic = "poisson"
	Bursts        Traffic = "bursts"
	Long          Traffic = "long"
	Flows         Traffic = "flows"
	Trace         Traffic = "trace"
)

// Workload is one part of the traffic.
type Workload struct {
	// Name of its flows, in tables and metrics; the kind if not given.
	Name string `yaml:"name"`
	// Kind of traffic.
	Kind Traffic `yaml:"kind" enum:"incast|permutation|all-to-all|all-reduce-ring|all-reduce-tree|poisson|bursts|long|flows|trace"`
	// Src are the senders of incast, bursts and long. Names, ranges
	// host8..host23, patterns host*, one NIC host3/eth1.
	Src Select `yaml:"src"`
	// Dst are the receivers. With as many as senders, pair by pair (but for
	// incast); else each sender to each, without itself.
	Dst Select `yaml:"dst"`
	// Hosts that take part in the other kinds, with all their NICs; none given: all.
	Hosts Select `yaml:"hosts"`
	// Bytes of a flow, of a rank's buffer in all-reduce, or of a burst. 0 of long: endless.
	Bytes Bytes `yaml:"bytes" min:"0B" max:"1TB"`
	// Start of the first flow.
	Start sim.Time `yaml:"start" min:"0ns" max:"100000s"`
	// Jitter is added to each start, uniform in [0, jitter).
	Jitter sim.Time `yaml:"jitter" min:"0ns" max:"1000s"`
	// Every is the time between the starts of bursts, of the senders of incast and
	// long (flows that join one by one), or of rounds.
	Every sim.Time `yaml:"every" min:"0ns" max:"1000s"`
	// Count of bursts, or rounds of permutations, all-to-all and all-reduce; 0
	// of bursts: until the end.
	Count int64 `yaml:"count" min:"0" max:"1000000000"`
	// End is the last start of bursts and Poisson arrivals; 0: the duration.
	End sim.Time `yaml:"end" min:"0ns" max:"100000s"`
	// Load of Poisson arrivals, as a share of the hosts' rate.
	Load Ratio `yaml:"load" min:"0" max:"1"`
	// CDF of Poisson sizes: WebSearch, FbHdp, AliStorage2019, or a file of
	// "size percent" lines.
	CDF string `yaml:"cdf"`
	// Seed of its choices; 0: from the scenario's.
	Seed uint64 `yaml:"seed"`
	// CrossLeaf says that partners are on other leaves, not only on other hosts.
	CrossLeaf bool `yaml:"cross_leaf"`
	// Chunks that a rank's share of an all-reduce is cut into.
	Chunks int `yaml:"chunks" min:"1" max:"1024"`
	// File of a trace.
	File string `yaml:"file"`
	// Format of it: hpcc (flow.txt), htsim (.cm), csv, or auto by its name.
	Format string `yaml:"format" enum:"auto|hpcc|htsim|csv"`
	// List of flows.
	List []FlowSpec `yaml:"list" items:"1000000"`

	// Op of the flows; "": the host's. tcp: the lossy class.
	Op string `yaml:"op" enum:"|write|send|read|tcp"`
	// Service of the queue pairs; "": the host's.
	Service string `yaml:"service" enum:"|rc|uc|ud"`
	// Priority; -1: the host's.
	Priority int8 `yaml:"priority" min:"-1" max:"7"`
	// DSCP; -1: the host's.
	DSCP int8 `yaml:"dscp" min:"-1" max:"63"`
	// QPs over which each flow is spread; 0: the host's.
	QPs int `yaml:"qps" min:"0" max:"1024"`
	// OneQP says that flows between the same two endpoints use one queue pair,
	// so that each starts at the rate at which the last one ended.
	OneQP bool `yaml:"one_qp"`
	// SrcPort is the UDP source port of all its flows; 0: a function of the queue pair.
	SrcPort uint16 `yaml:"src_port" min:"0" max:"65535"`
	// Message cuts flows into messages; 0: the host's.
	Message Bytes `yaml:"message" min:"0B" max:"2GiB"`
	// Rate limits each queue pair (rate limit of the QP's attributes); 0: none.
	Rate sim.Rate `yaml:"rate" min:"0bps" max:"10Tbps"`
	// Endless flows are not waited for.
	Endless bool `yaml:"endless"`
	// After is the name of a workload that must have finished before start counts.
	After string `yaml:"after"`
}

func (w *Workload) setDefaults() {
	w.Priority, w.DSCP, w.Chunks, w.Format = -1, -1, 1, "auto"
}

// FlowSpec is one flow of a list.
type FlowSpec struct {
	// Src is the sender.
	Src string `yaml:"src"`
	// Dst is the receiver.
	Dst string `yaml:"dst"`
	// Bytes of the flow; 0: the workload's.
	Bytes Bytes `yaml:"bytes" min:"0B" max:"1TB"`
	// Start, added to the workload's.
	Start sim.Time `yaml:"start" min:"0ns" max:"100000s"`
	// SrcPort is its UDP source port; 0: the workload's.
	SrcPort uint16 `yaml:"src_port" min:"0" max:"65535"`
}

// FaultKind names what goes wrong.
type FaultKind string

// The faults.
const (
	LinkDown     FaultKind = "link-down"
	Flap         FaultKind = "flap"
	Errors       FaultKind = "errors"
	Storm        FaultKind = "storm"
	SlowReceiver FaultKind = "slow-receiver"
	DropNext     FaultKind = "drop-next"
	Reroute      FaultKind = "reroute"
)

// Fault is something that goes wrong.
type Fault struct {
	// At is when.
	At sim.Time `yaml:"at" min:"0ns" max:"100000s"`
	// Kind of it: link-down, flap (down and up again, every and count), errors
	// (frames are corrupted), storm (a host pauses its switch without end),
	// slow-receiver (a host takes in rate), drop-next (count packets are lost),
	// reroute (routes of a bounce and of topology.routes give way to shortest paths).
	Kind FaultKind `yaml:"kind" enum:"link-down|flap|errors|storm|slow-receiver|drop-next|reroute"`
	// Where: a link leaf0-spine1, a port leaf0/Ethernet3, or a host host3; of a
	// reroute nowhere.
	Where string `yaml:"where"`
	// For is how long; 0: to the end.
	For sim.Time `yaml:"for" min:"0ns" max:"100000s"`
	// Every is the time between flaps.
	Every sim.Time `yaml:"every" min:"0ns" max:"1000s"`
	// Count of flaps, or of packets that are dropped; 0 counts as 1.
	Count int `yaml:"count" min:"0" max:"1000000"`
	// Priorities of a storm, or of what is dropped or corrupted.
	Priorities Prios `yaml:"priorities"`
	// Rate of a slow receiver.
	Rate sim.Rate `yaml:"rate" min:"0bps" max:"10Tbps"`
	// ErrorRate is the share of frames that is corrupted.
	ErrorRate Ratio `yaml:"error_rate" min:"0" max:"1"`
	// What is dropped.
	What string `yaml:"what" enum:"any|data|ack|cnp|pfc"`
}

func (f *Fault) setDefaults() { f.What, f.Priorities = "any", 0xff }
