package faultplan

import (
	"context"
	"errors"
	"fmt"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// Copier copies blocks into the memory of another host.
type Copier struct {
	CQ    *verbs.CQ
	Block *verbs.MR // what is copied
	// Dial makes a queue pair and connects it; Copier closes those that died.
	Dial func(ctx context.Context) (*verbs.QP, *verbs.Peer, error)
	// Tries is how often one block is tried.
	Tries int

	qp   *verbs.QP
	peer *verbs.Peer
	// Seen counts what went wrong, by what the program was told.
	Seen map[string]int
}

// Copy copies the block to an offset of the other host's memory.
func (c *Copier) Copy(ctx context.Context, off int) error {
	var last error
	for range c.Tries {
		if last = c.try(ctx, off); last == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fmt.Errorf("copy to offset %d: %d tries: %w", off, c.Tries, last)
}

func (c *Copier) try(ctx context.Context, off int) error {
	if c.qp == nil {
		qp, peer, err := c.Dial(ctx)
		if err != nil {
			c.saw(err.Error())
			return err
		}
		c.qp, c.peer = qp, peer
	}
	err := c.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: c.Block.SGE(0, c.Block.Len()), Remote: c.peer.At(off)})
	if err != nil {
		if errors.Is(err, verbs.ErrQueueFull) {
			c.saw("queue full")
			return err // the next try posts again
		}
		return c.lost(err.Error(), err)
	}
	var wcs [1]ib.WC
	if _, err := c.CQ.Wait(ctx, wcs[:]); err != nil {
		return err
	}
	if s := wcs[0].Status; s != ib.Success {
		// The queue pair is in Error: what an RNIC does is told, and only a new
		// connection helps.
		return c.lost(s.String(), fmt.Errorf("write: %v", s))
	}
	return nil
}

// lost gives the connection up.
func (c *Copier) lost(what string, err error) error {
	c.saw(what)
	err = errors.Join(err, c.qp.Close())
	c.qp = nil
	return err
}

func (c *Copier) saw(what string) {
	if c.Seen == nil {
		c.Seen = map[string]int{}
	}
	c.Seen[what]++
}
