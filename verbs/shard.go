package verbs

import (
	"fmt"
	"math/bits"
	"sync"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/driver"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/udp"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/rnic"
)

// MaxShards is the most shards that a device can have.
const MaxShards = udp.MaxShards

// Steering is by what the system chooses the shard's socket that a packet comes to.
type Steering = udp.Steering

// The ways; see [udp.Steering]. What comes to the wrong one is handed over.
const (
	SteerQPN       = udp.SteerQPN
	SteerPorts     = udp.SteerPorts
	SteerAddresses = udp.SteerAddresses
)

// shard is one engine of a device: a link, an adapter for the queue pairs whose
// numbers belong to it, and a driver.
type shard struct {
	index   int
	link    link.Link
	groups  link.Grouper
	adapter *rnic.Adapter
	drv     *driver.Driver
}

// Vector is a completion vector: which shard a completion queue is of. What
// follows is the place of the queue pairs that receive to it, and with that, who
// works for them: the shard's goroutine, or the goroutine that polls the queue.
type Vector int

// Which vector, unless it is one that [VectorOf] returns.
const (
	// AnyVector lets the device choose: the completion queues of a device go round
	// its shards.
	AnyVector Vector = 0
	// SpreadVectors puts the queue pairs of one completion queue into all shards by
	// turns. Several processors then complete to it at the same time, which takes
	// a lock, and who polls it drives all shards.
	SpreadVectors Vector = -1
)

// VectorOf returns completion vector i, 0 to [Attr].CompVectors-1, as
// ibv_create_cq's comp_vector counts.
func VectorOf(i int) Vector { return Vector(i + 1) }

// shardOf returns the shard of a vector, nil for all.
func (d *Device) shardOf(v Vector) (*shard, error) {
	switch {
	case v == AnyVector:
		return d.nextShard(), nil
	case v == SpreadVectors && len(d.shards) == 1:
		return d.shards[0], nil
	case v == SpreadVectors:
		return nil, nil
	case v < 0 || int(v) > len(d.shards):
		return nil, fmt.Errorf("completion vector is %d, can be 0 to %d: %w", int(v)-1, len(d.shards)-1, ErrInvalid)
	}
	return d.shards[v-1], nil
}

// nextShard returns the shards by turns.
func (d *Device) nextShard() *shard {
	if len(d.shards) == 1 {
		return d.shards[0]
	}
	return d.shards[int((d.turn.Add(1)-1)%uint32(len(d.shards)))]
}

// checkShards refuses what cannot be sharded.
func (cfg *Config) checkShards() error {
	switch n := cfg.Shards; {
	case n < 0 || n > MaxShards:
		return errorf(ErrInvalid, "Shards is %d, can be 1 to %d, or 0 for 1", n, MaxShards)
	case n > 1 && cfg.Ethernet:
		return errorf(ErrUnsupported, "Shards is %d, and an Ethernet device has one", n)
	case n > 1 && cfg.Link != nil:
		return errorf(ErrUnsupported, "Shards is %d, and a Link is one", n)
	}
	return nil
}

func newLock() mem.Locker { return new(sync.Mutex) }

// all calls f with the locks of all drivers. They are taken in the order of the
// shards; whoever has one of them waits for no other but in that order.
func (d *Device) all(f func(now clock.Time)) error { return d.allFrom(0, f) }

func (d *Device) allFrom(i int, f func(now clock.Time)) error {
	if i == len(d.shards)-1 {
		return d.shards[i].drv.Do(f)
	}
	var err error
	if e := d.shards[i].drv.Do(func(clock.Time) { err = d.allFrom(i+1, f) }); e != nil {
		return e
	}
	return err
}

// do runs a control call that concerns one shard alone.
func (s *shard) do(d *Device, what string, f func(now clock.Time) error) error {
	var err error
	if s.drv.Do(func(now clock.Time) { err = f(now) }) != nil {
		return errorf(ErrClosed, "%s: device %s is closed", what, d.name)
	}
	return err
}

// addStats adds the shard's counters to sum, which is nil or those of others. room is
// memory for them, nil at first. Owner.
func (s *shard) addStats(sum, room Stats) (_, _ Stats) {
	if sum == nil {
		return s.adapter.Stats(), room
	}
	room = s.adapter.AppendStats(room[:0])
	for i := range sum {
		sum[i].Value += room[i].Value
	}
	return sum, room
}

// pollSet drives the shards in set until done says that this will do, beginning
// with another one each time.
func (d *Device) pollSet(set uint64, turn int, done func() bool) {
	for range len(d.shards) {
		turn = (turn + 1) % len(d.shards)
		if set>>turn&1 == 0 {
			continue
		}
		d.shards[turn].drv.Poll()
		if done() {
			return
		}
	}
}

// park hands the shards in set to their goroutines.
func (d *Device) park(set uint64) {
	for ; set != 0; set &= set - 1 {
		d.shards[bits.TrailingZeros64(set)].drv.Park()
	}
}

// everyShard is the set of all shards.
func (d *Device) everyShard() uint64 { return 1<<(len(d.shards)-1)<<1 - 1 }
