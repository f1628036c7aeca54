package counter

import (
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Pause is priority flow control of one priority and direction as an interface's
// statistics have it. Received means that the peer stops us; sent, that we cannot
// drain.
type Pause struct {
	Frames      snapshot.Value[uint64] // XOFF and XON frames, or XOFF alone where the driver splits them
	DurationUS  snapshot.Value[uint64] // microseconds of pause
	Transitions snapshot.Value[uint64] // from running to paused
	Discards    snapshot.Value[uint64] // received frames of the priority that were dropped
}

// PFC are the two directions by priority.
type PFC struct {
	Rx, Tx [8]Pause
	Any    bool // there is a counter at all
	// Kernel says of which priorities the frames are those of 802.1Qbb that the kernel
	// asks drivers for; they are left out while they are 0.
	Kernel [8]bool
}

// PFCOfPort reads the counters of a port: our own devices, which may be Ethernet ports
// of their own, count PFC there.
func PFCOfPort(p *snapshot.Port) PFC { return PFCOf(&snapshot.Netdev{Ethtool: p.HWCounters}) }

// PFCOf reads the statistics of an interface, ethtool -S. Names of mlx5, bnxt_en,
// ice and i40e, and mlx4 are known; where there are none, the frames are those of
// 802.1Qbb that the kernel asks drivers for.
func PFCOf(n *snapshot.Netdev) PFC {
	var p PFC
	for _, c := range n.Ethtool {
		tx, prio, field, ok := pauseName(c.Name)
		if !ok {
			continue
		}
		p.Any = true
		side := &p.Rx[prio]
		if tx {
			side = &p.Tx[prio]
		}
		switch field {
		case "frames":
			side.Frames = c.Value
		case "duration":
			side.DurationUS = c.Value
		case "transitions":
			side.Transitions = c.Value
		case "discards":
			v, ok := c.Value.Get()
			if ok {
				c.Value = snapshot.Known(v + side.Discards.Or(0))
			}
			side.Discards = c.Value
		}
	}
	if dcb, ok := n.DCB.PFC.Get(); ok {
		for i := range 8 {
			if p.Rx[i].Frames.IsZero() && p.Tx[i].Frames.IsZero() && dcb.Requests[i]|dcb.Indications[i] != 0 {
				p.Any, p.Kernel[i] = true, true
				p.Tx[i].Frames, p.Rx[i].Frames = snapshot.Known(dcb.Requests[i]), snapshot.Known(dcb.Indications[i])
			}
		}
	}
	return p
}

// patterns have %p for the priority and start after the direction, or have it where
// %d stands.
var patterns = []struct{ head, tail, field string }{
	{"%d_prio", "_pause", "frames"}, // mlx5
	{"%d_prio", "_pause_duration", "duration"},
	{"%d_prio", "_pause_transition", "transitions"},
	{"%d_prio", "_buf_discard", "discards"},
	{"%d_prio", "_discards", "discards"},
	{"%d_prio", "_cong_discard", "discards"},
	{"%d_pfc_ena_frames_pri", "", "frames"}, // bnxt_en
	{"pfc_pri", "_%d_duration_us", "duration"},
	{"pfc_pri", "_%d_transitions", "transitions"},
	{"%d_priority_", "_xoff.nic", "frames"},     // ice
	{"port.%d_priority_", "_xoff", "frames"},    // i40e
	{"%d_pause_prio_", "", "frames"},            // mlx4
	{"%d_pause_duration_prio_", "", "duration"}, // mlx4
	{"%d_pause_transition_prio_", "", "transitions"},
}

func pauseName(name string) (tx bool, prio int, field string, ok bool) {
	for _, direction := range []string{"rx", "tx"} {
		if !strings.Contains(name, direction) {
			continue
		}
		for _, p := range patterns {
			digit, is := between(name, p.head, p.tail, direction)
			if !is || len(digit) != 1 {
				continue
			}
			if n, err := strconv.Atoi(digit); err == nil && n < 8 {
				return direction == "tx", n, p.field, true
			}
		}
	}
	return false, 0, "", false
}

// between is what of a name is between head and tail, one of which may have %d in the
// place of a direction.
func between(name, head, tail, direction string) (string, bool) {
	before, after, directed := strings.Cut(head, "%d")
	rest, ok := strings.CutPrefix(name, before)
	if ok && directed {
		if rest, ok = strings.CutPrefix(rest, direction); ok {
			rest, ok = strings.CutPrefix(rest, after)
		}
	}
	if !ok {
		return "", false
	}
	before, after, directed = strings.Cut(tail, "%d")
	if directed {
		if rest, ok = strings.CutSuffix(rest, after); ok {
			rest, ok = strings.CutSuffix(rest, direction)
		}
	}
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, before)
}
