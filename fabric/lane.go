package fabric

import (
	"github.com/verbena-rdma/verbena/fabric/host"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/ib"
)

// lane is a connection with what has still to be posted on it.
type lane struct {
	c      *host.Conn
	todo   []piece
	depth  int
	shared bool
}

// piece is the part of a flow that one lane carries.
type piece struct {
	flow    int32
	left    int64 // not posted yet
	message int64 // of which at most so many bytes at a time
	op      ib.WROp
}

// maxMessage keeps messages below 2^31 bytes and PSNs comparable.
const maxMessage = 1 << 30

// pump posts messages for as long as the queue has room.
func (r *Run) pump(now sim.Time, l *lane) error {
	if r.lanes[l.c] != l {
		return nil // closed meanwhile
	}
	for len(l.todo) > 0 && l.c.Posted() < l.depth {
		t := &l.todo[0]
		if r.state[t.flow].over { // it has failed
			l.todo = l.todo[:copy(l.todo, l.todo[1:])]
			continue
		}
		n := min(t.left, t.message)
		t.left -= n
		flow, op := t.flow, t.op
		if t.left == 0 {
			l.todo = l.todo[:copy(l.todo, l.todo[1:])]
		} else if r.state[flow].endless {
			t.left += n
		}
		r.state[flow].open++
		if err := l.c.Post(now, op, n, flow, 0); err != nil {
			return err
		}
	}
	return nil
}
