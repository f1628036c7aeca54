package scenario

import "github.com/verbena-rdma/verbena/fabric/sim"

// Scenario is one file: a fabric, its traffic, what goes wrong in it, and what
// is expected of it. Keys of the file are the names in the tags. Values that
// the file does not give are those of Default.
type Scenario struct {
	// Name of the scenario, for lists and file names.
	Name string `yaml:"name"`
	// Title is one line that says what it shows.
	Title string `yaml:"title"`
	// Teaches is what somebody should know after it, in a few sentences.
	Teaches string `yaml:"teaches"`
	// Seed of every random choice. Same seed, same run.
	Seed uint64 `yaml:"seed"`
	// Until says when the run ends: when all flows but endless ones are
	// finished, or after the duration only.
	Until Until `yaml:"until" enum:"flows|duration"`
	// Duration of virtual time after which the run ends in any case.
	Duration sim.Time `yaml:"duration" min:"1ns" max:"100000s"`
	// StopOnDeadlock ends the run when a cycle of paused egresses closes.
	StopOnDeadlock bool `yaml:"stop_on_deadlock"`

	Topology Topology `yaml:"topology"`
	Packet   Packet   `yaml:"packet"`
	// Switch is the setting of every switch.
	Switch Switch `yaml:"switch"`
	// Switches change it for those whose names match.
	Switches []Overlay `yaml:"switches" items:"4096" overlay:"switch"`
	// Host is the setting of every host.
	Host Host `yaml:"host"`
	// Hosts change it for those whose names match.
	Hosts []Overlay `yaml:"hosts" items:"4096" overlay:"host"`
	// Workload is the traffic. All entries run at the same time.
	Workload []Workload `yaml:"workload" items:"10000"`
	// Faults happen at their instants.
	Faults []Fault `yaml:"faults" items:"100000"`
	Record Record  `yaml:"record"`
	// Expect lists numbers that the run must show, each with where it is from.
	Expect []Expect `yaml:"expect" items:"10000"`

	// SharedKeys is a place for YAML anchors that other keys refer to; nothing
	// in it is read.
	SharedKeys Ignored `yaml:"x"`

	file string
	read *decoder // where each key of the file stands
	base *node    // the file as a tree, overrides applied
}

// Until says when a run ends.
type Until string

// The ends.
const (
	UntilFlows    Until = "flows"
	UntilDuration Until = "duration"
)

// Packet says how long packets are. The defaults are real headers; the keys
// exist so that a run can use another simulator's packet.
type Packet struct {
	// MTU is the path MTU: 256, 512, 1024, 2048 or 4096.
	MTU int `yaml:"mtu" min:"256" max:"4096"`
	// Payload bytes of a full data packet, at most the MTU; 0: the MTU.
	Payload int `yaml:"payload" min:"0" max:"4096"`
	// Header bytes around the payload of every data packet, destination MAC to
	// FCS; -1: those of the real headers (Ethernet 14, IPv4 20, UDP 8, BTH 12,
	// RETH 16 where there is one, ICRC 4, FCS 4).
	Header int `yaml:"header" min:"-1" max:"1024"`
	// Control is the bytes of ACK, NAK and CNP frames; 0: those of the real
	// headers, at least 64.
	Control int `yaml:"control" min:"0" max:"1024"`
	// Gap says whether preamble and inter-frame gap (20 bytes) take time on
	// the link.
	Gap bool `yaml:"gap"`
}
