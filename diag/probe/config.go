package probe

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Config says how hosts are probed. Fields that are zero have defaults.
type Config struct {
	// Port is the listeners' control port; 0 is ControlPort.
	Port uint16
	// RoCEPort is where probes go; 0 is 4791. Anything else is for tests.
	RoCEPort uint16
	// Paths is how many source ports are tried, 1 to 16; 0 is 4.
	Paths int
	// Count is how many packets each path gets for reach, loss and time, 1 to
	// 10,000; 0 is 25.
	Count int
	// Interval is the time between packets, 10 µs to 100 ms; 0 is 2 ms.
	Interval time.Duration
	// Timeout is how long a packet is waited for, 10 ms to 10 s; 0 is 1 s.
	Timeout time.Duration
	// DSCP is the class of RoCE, 0 to 63, where Class is set; else it is 26.
	DSCP  uint8
	Class bool
	// DSCPs are the code points that are tried; none: 0, 8, 10, 26, 34, 46, 48
	// and the class.
	DSCPs []uint8
	// Burst is how many packets a train has, 2 to 512; 0 is 32, less than 0 sends
	// none.
	Burst int
	// Family is 4 or 6 to insist on one; 0 takes the first address of a name.
	Family int
	// Source is the address to probe from; the zero value leaves it to the
	// routes.
	Source netip.Addr
	// Capture says whether a packet socket listens too.
	Capture CaptureMode
	// Parallel bounds the hosts that are probed at a time; 0 is 8.
	Parallel int
	// Version is told to the listeners.
	Version string
	// Sysfs is where the kernel shows its RDMA devices; "" is /sys.
	Sysfs string

	patience time.Duration // for all answers of a listener; 0 is ctlTime
	// lookup finds the addresses of a name; nil is the host's resolver.
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

const (
	// maxHosts bounds the hosts of one Run.
	maxHosts = 1024
	// maxReach bounds how long the small packets of one direction take: a
	// listener ends a session after sessionTime.
	maxReach = 3 * time.Minute
)

// filled returns c with its defaults, or what is wrong with it.
func (c Config) filled() (Config, error) {
	def(&c.Port, ControlPort)
	def(&c.RoCEPort, RoCEPort)
	def(&c.Paths, 4)
	def(&c.Count, 25)
	def(&c.Interval, 2*time.Millisecond)
	def(&c.Timeout, time.Second)
	def(&c.Burst, 32)
	def(&c.Parallel, 8)
	def(&c.patience, ctlTime)
	if c.lookup == nil {
		c.lookup = net.DefaultResolver.LookupNetIP
	}
	if !c.Class {
		c.DSCP, c.Class = 26, true
	}
	if len(c.DSCPs) == 0 {
		c.DSCPs = []uint8{0, 8, 10, 26, 34, 46, 48}
	}
	switch {
	case c.Paths < 1 || c.Paths > maxPaths:
		return c, fmt.Errorf("paths %d: can be 1 to %d", c.Paths, maxPaths)
	case c.Count < 1 || c.Count > 10_000 || c.Count*c.Paths > maxSightings/2:
		return c, fmt.Errorf("count %d on %d paths: can be 1 to %d packets in all", c.Count, c.Paths, maxSightings/2)
	case c.Interval < 10*time.Microsecond || c.Interval > maxInterval:
		return c, fmt.Errorf("interval %v: can be 10µs to %v", c.Interval, maxInterval)
	case c.Timeout < 10*time.Millisecond || c.Timeout > maxWait:
		return c, fmt.Errorf("timeout %v: can be 10ms to %v", c.Timeout, maxWait)
	case c.reachTime() > maxReach:
		return c, fmt.Errorf("count %d on %d paths, one every %v: may take %v each way with a timeout of %v, at most %v",
			c.Count, c.Paths, c.Interval, c.reachTime(), c.Timeout, maxReach)
	case c.DSCP > 63:
		return c, fmt.Errorf("DSCP %d: can be 0 to 63", c.DSCP)
	case c.Burst > 512 || c.Burst == 1:
		return c, fmt.Errorf("burst %d: can be 2 to 512", c.Burst)
	case c.Family != 0 && c.Family != 4 && c.Family != 6:
		return c, fmt.Errorf("family %d: can be 4 or 6", c.Family)
	case c.Parallel < 1 || c.Parallel > 64:
		return c, fmt.Errorf("parallel %d: can be 1 to 64", c.Parallel)
	case len(c.DSCPs) > 64:
		return c, fmt.Errorf("%d code points: at most 64", len(c.DSCPs))
	}
	class := false
	for _, d := range c.DSCPs {
		if d > 63 {
			return c, fmt.Errorf("DSCP %d: can be 0 to 63", d)
		}
		class = class || d == c.DSCP
	}
	if !class {
		c.DSCPs = append(append([]uint8(nil), c.DSCPs...), c.DSCP)
	}
	return c, nil
}

// reachTime is how long the small packets of one direction may take.
func (c Config) reachTime() time.Duration {
	d := time.Duration(c.Count*c.Paths) * c.Interval
	return d + (d/batchTime+1)*c.Timeout
}

func def[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}
