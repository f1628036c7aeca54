package verbs

import (
	"fmt"
	"sync/atomic"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/verbs/faultplan"
)

// PD is a protection domain: what regions, queue pairs and address handles
// belong to. A queue pair uses only regions of its own domain.
type PD struct {
	dev  *Device
	pd   mem.PD
	err  error // why the device gave none
	dead atomic.Bool
	// inline finds the bytes of an element of a list that is sent inline. It is
	// made once, so that posting does not allocate.
	inline func(sge ib.SGE) ([]byte, bool)
}

// AllocPD makes a protection domain. Where that fails (the device is closed,
// MaxPD is reached) the calls on the domain return the reason.
func (d *Device) AllocPD() *PD {
	p := &PD{dev: d}
	err := d.faults.control(faultplan.AllocPD)
	if err != nil {
		p.err = fmt.Errorf("allocate PD: %w", err)
		return p
	}
	err = d.do("allocate PD", func(clock.Time) error {
		pd, err := d.adapter.AllocPD()
		p.pd = pd
		return err
	})
	if p.err = err; err != nil {
		return p
	}
	p.inline = func(sge ib.SGE) ([]byte, bool) { return d.regions.bytes(p.pd, sge) }
	d.adopt(p)
	return p
}

// Device returns the device of the domain.
func (p *PD) Device() *Device { return p.dev }

// usable returns why the domain cannot be used for what.
func (p *PD) usable(what string) error {
	if p.err != nil {
		return p.err
	}
	if p.dead.Load() {
		return errorf(ErrClosed, "%s: the PD is closed", what)
	}
	return nil
}

// Close frees the domain. It matches ErrBusy while something belongs to it.
func (p *PD) Close() error {
	if p.err != nil {
		return nil
	}
	_, err := p.dev.release(p, &p.dead, func(clock.Time) error { return p.dev.adapter.DeallocPD(p.pd) })
	return err
}

func (p *PD) kill() { p.dead.Store(true) }
