package probe

import (
	"fmt"
	"net/netip"
	"time"
)

// Status is how bad something is. In JSON it is its name.
type Status uint8

// The statuses, from good to bad. Unknown says that there is no judgement: it
// counts for more than a warning and for less than a failure.
const (
	OK Status = iota
	Warn
	Unknown
	Fail
)

var statusNames = [...]string{"ok", "warn", "unknown", "fail"}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "status?"
}

// MarshalText writes the name.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name.
func (s *Status) UnmarshalText(b []byte) error {
	for i, name := range statusNames {
		if string(b) == name {
			*s = Status(i)
			return nil
		}
	}
	return fmt.Errorf("status %.32q is not known", b)
}

// ExitCode is the exit status of a program that ends with s: 0 ok, 1 warn,
// 2 fail, 3 cannot judge.
func (s Status) ExitCode() int { return [...]int{0, 1, 3, 2}[min(int(s), 3)] }

// Verdict says whether UDP 4791 passes in one direction.
type Verdict string

// The verdicts.
const (
	Open       Verdict = "open"
	Partly     Verdict = "partly open" // some source ports pass, others do not
	Blocked    Verdict = "blocked"
	CannotTell Verdict = "cannot tell"
)

// Result is what one host came to. Its fields keep their names and meaning.
// Durations are nanoseconds in JSON.
type Result struct {
	Host     string     `json:"host"`               // as asked for
	Address  netip.Addr `json:"address,omitzero"`   // probed
	Local    netip.Addr `json:"local,omitzero"`     // this host's
	Status   Status     `json:"status"`             // the worst of the findings
	Error    string     `json:"error,omitempty"`    // why nothing could be measured
	SeenAs   netip.Addr `json:"seen_as,omitzero"`   // this host's address as the other end sees it, where it is another
	ThereOwn netip.Addr `json:"there_own,omitzero"` // the other end's address as it knows it, where it is another
	Here     Host       `json:"here"`               // this end
	There    Host       `json:"there"`              // the other end
	Forward  Direction  `json:"forward"`            // from here to there
	Reverse  Direction  `json:"reverse"`            // from there to here
	RTT      []Times    `json:"rtt,omitempty"`      // by path, of probes that were echoed
	Clock    Clock      `json:"clock"`              // between the two ends
	RoCEMTU  int        `json:"roce_mtu,omitzero"`  // largest path MTU (256 to 4096) that fits both directions
	Class    uint8      `json:"dscp"`               // the RoCE class that was asked about

	Findings []Finding `json:"findings"`        // worst first
	Notes    []string  `json:"notes,omitempty"` // how far what was heard goes
}

// Clock is the difference between the two clocks.
type Clock struct {
	Offset time.Duration `json:"offset_ns"`        // far clock less this one
	Error  time.Duration `json:"error_ns"`         // at most, either way, with a network that is no quicker one way
	Source string        `json:"source,omitempty"` // "echo" (UDP 4791) or "control" (TCP)
	// Unsteady says that the clocks moved against each other during the probe, so
	// that there are no one-way times.
	Unsteady bool `json:"unsteady,omitempty"`
}

// Times are of a sample; zero N means none.
type Times struct {
	N      int           `json:"n"`
	Min    time.Duration `json:"min_ns"`
	Median time.Duration `json:"median_ns"`
	Max    time.Duration `json:"max_ns"`
}

// Direction is what happens to packets one way.
type Direction struct {
	Verdict    Verdict     `json:"verdict"`
	Why        string      `json:"why,omitempty"`   // of a verdict that is not open
	Where      string      `json:"where,omitempty"` // of a block: "sender", "network", "receiver"
	HeardBy    string      `json:"heard_by"`        // "socket", "capture" (packet socket only) or "" (nothing heard)
	Sent       int         `json:"sent"`            // of small packets over all paths
	Seen       int         `json:"seen"`
	Reordered  int         `json:"reordered"` // arrived after a later one of the same path
	Duplicated int         `json:"duplicated"`
	Errors     []Count     `json:"send_errors,omitempty"` // packets that did not leave, by errno
	BadICRC    int         `json:"bad_icrc"`
	ClearedDF  int         `json:"cleared_df"`
	Strangers  int         `json:"strangers"`         // packets that came from another address
	Cut        int         `json:"fragmented"`        // packets that came in fragments
	Overrun    int         `json:"overrun,omitempty"` // packets that the receiver's own socket dropped: no room, or a wrong UDP checksum
	OneWay     Times       `json:"one_way"`           // with Clock.Offset taken out
	Paths      []Path      `json:"paths,omitempty"`
	MTU        MTU         `json:"mtu"`
	DSCP       []CodePoint `json:"dscp,omitempty"` // sent with ECT(0)
	ECN        []CodePoint `json:"ecn,omitempty"`  // sent in the RoCE class
	Marked     Ratio       `json:"ce_marked"`      // of all that left as ECT and arrived
	Burst      Burst       `json:"burst"`
	ICMP       []Notice    `json:"icmp,omitempty"`
}

// Count is how often something was.
type Count struct {
	What  string `json:"what"`
	Count int    `json:"count"`
}

// Ratio is a part of a whole.
type Ratio struct {
	Part  int `json:"part"`
	Whole int `json:"whole"`
}

// Path is what happens to packets with one source port.
type Path struct {
	Port    uint16 `json:"source_port"`
	Arrived uint16 `json:"arrived_port,omitzero"` // the source port as received
	Sent    int    `json:"sent"`
	Seen    int    `json:"seen"`
	TTL     uint8  `json:"ttl,omitzero"` // as received; sent is 64
	OneWay  Times  `json:"one_way"`
	MTU     int    `json:"mtu,omitzero"` // largest IP packet that passed
}

// MTU is how large packets may be. Sizes are of IP packets, in bytes.
type MTU struct {
	Interface int  `json:"interface"`     // of the sender's interface
	Path      int  `json:"path,omitzero"` // largest that passed on every path, in steps of 4
	RoCE      int  `json:"roce,omitzero"` // RoCE path MTU that fits into it
	Limited   bool `json:"limited"`       // smaller than the sender's interface
	Told      int  `json:"told,omitzero"` // what an ICMP error said; 0: nobody said anything
}

// CodePoint is what became of one value of DSCP or ECN.
type CodePoint struct {
	Sent    uint8 `json:"sent"`
	Tries   int   `json:"tries"`
	Arrived int   `json:"arrived"`
	As      []int `json:"as"` // every value that arrived, sorted
}

// Burst is what happens to packets that are sent without a pause.
type Burst struct {
	Trains  int    `json:"trains"`
	Packets int    `json:"packets"` // of a train
	Size    int    `json:"size"`
	Sent    int    `json:"sent"`
	Seen    int    `json:"seen"`
	Rate    int64  `json:"rate_bps,omitzero"` // at which the quickest train arrived
	Limited bool   `json:"limited"`           // every train arrived far slower than it was sent
	Local   string `json:"local,omitempty"`   // errno of packets that the sender's own queue dropped
}

// Finding is one thing that is wrong, or that could not be judged.
type Finding struct {
	ID         string   `json:"id"`                  // stable: see docs/probe.md
	Rule       string   `json:"rule,omitempty"`      // of the doctor's rule book, for example L12
	Status     Status   `json:"status"`              // Warn, Fail or Unknown
	Direction  string   `json:"direction,omitempty"` // "forward", "reverse" or "both"
	What       string   `json:"what"`
	Evidence   []string `json:"evidence,omitempty"`
	Effect     Effect   `json:"qp"`
	Fix        []string `json:"fix,omitempty"`
	Confidence string   `json:"confidence"` // "high", "medium" or "low"
}

// Effect is what a finding does to a queue pair.
type Effect struct {
	What       string   `json:"what,omitempty"`
	State      string   `json:"state,omitempty"`      // where the QP stays or ends
	Completion string   `json:"completion,omitempty"` // status of the work request
	Counters   []string `json:"counters,omitempty"`   // that move, by mlx5's and rxe's names, and where
}
