package verbs

import (
	"fmt"
	"sync/atomic"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs/faultplan"
)

// AH is an address handle: where datagrams of a UD queue pair go.
type AH struct {
	pd   *PD
	av   ib.AV
	ah   ib.AH
	dead atomic.Bool
}

// CreateAH makes an address handle. The error says what is wrong with the
// vector: a row of the GID table that is unusable, a destination of another
// address family, no route.
func (p *PD) CreateAH(av ib.AV) (*AH, error) {
	if err := p.usable("create AH"); err != nil {
		return nil, err
	}
	if err := p.dev.faults.control(faultplan.CreateAH); err != nil {
		return nil, fmt.Errorf("create AH: %w", err)
	}
	h := &AH{pd: p, av: av}
	err := p.dev.do("create AH", func(clock.Time) error {
		ah, err := p.dev.adapter.CreateAH(p.pd, &av)
		h.ah = ah
		return err
	})
	if err != nil {
		return nil, err
	}
	p.dev.adopt(h)
	return h, nil
}

// Handle returns what a work request names it by.
func (h *AH) Handle() ib.AH { return h.ah }

// AV returns the address vector.
func (h *AH) AV() ib.AV { return h.av }

// Close frees the handle; sends that still name it fail.
func (h *AH) Close() error {
	dev := h.pd.dev
	_, err := dev.release(h, &h.dead, func(clock.Time) error { return dev.adapter.DestroyAH(h.ah) })
	return err
}

func (h *AH) kill() { h.dead.Store(true) }
