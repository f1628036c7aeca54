package verbs

import (
	"fmt"

	"github.com/verbena-rdma/verbena/clock"
)

// SendPFC makes the neighbour of an Ethernet device, a switch or the other end
// of the cable, stop sending the priorities in prios, bit p for priority p, for
// some quanta of 512 bit times of the link's rate; with 0 they go on (802.1Qbb).
// Queue pairs whose service level is among them stand still at the other end,
// and no others. On other devices it matches ErrUnsupported.
func (d *Device) SendPFC(prios uint8, quanta uint16) error {
	return d.do("send PFC", func(clock.Time) error { return d.named(d.adapter.SendPFC(prios, quanta)) })
}

// SendPause is SendPFC for all that the neighbour sends (802.3 annex 31B).
func (d *Device) SendPause(quanta uint16) error {
	return d.do("send PAUSE", func(clock.Time) error { return d.named(d.adapter.SendPause(quanta)) })
}

// Paused returns the priorities that may not send now, bit p for priority p;
// 0 after Close.
func (d *Device) Paused() (prios uint8) {
	_ = d.drv.Do(func(clock.Time) { prios = d.adapter.Paused() })
	return prios
}

func (d *Device) named(err error) error {
	if err != nil {
		return fmt.Errorf("device %s: %w", d.name, err)
	}
	return nil
}
