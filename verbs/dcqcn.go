package verbs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rnic"
	"github.com/verbena-rdma/verbena/transport/dcqcn"
)

// DCQCN is the congestion control of a device or of one queue pair (SIGCOMM'15
// DCQCN). The zero value is off. On, data packets are ECN-capable, those that
// come marked are answered with CNPs, and queue pairs that get CNPs slow down.
type DCQCN struct {
	// Preset is "paper", "mlx5" or "hpcc": see docs/dcqcn.md. Empty is off.
	Preset string
	// Knobs change single parameters of the preset by name, "rpg_ai_rate":
	// "20Mbps" for one: see docs/dcqcn.md for names, units and limits. It is
	// copied.
	Knobs map[string]string
	// LineRate is the rate in bits a second that a queue pair has as long as
	// nobody notifies it, and never exceeds. 0 takes the interface's, where that
	// tells one.
	LineRate uint64
}

// Phase is where the reaction point of a queue pair stands.
type Phase = dcqcn.Phase

// On reports whether it is on.
func (c DCQCN) On() bool { return c.Preset != "" }

// String gives "off", or "paper at 1Gbps, rpg_ai_rate=20Mbps".
func (c DCQCN) String() string {
	if !c.On() {
		return "off"
	}
	s := c.Preset
	if c.LineRate != 0 {
		s += " at " + dcqcn.FormatRate(c.LineRate)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Knobs)) {
		s += ", " + name + "=" + c.Knobs[name]
	}
	return s
}

// Params returns all parameters, knobs applied; nil for off. The error matches
// ErrInvalid and names the knob, the value and the limits.
func (c DCQCN) Params() (*dcqcn.Params, error) {
	if !c.On() {
		if len(c.Knobs) > 0 || c.LineRate != 0 {
			return nil, errorf(ErrInvalid, "DCQCN is off, but knobs or a line rate are set; name a preset: %s", strings.Join(dcqcn.Presets(), ", "))
		}
		return nil, nil
	}
	p, err := dcqcn.Preset(c.Preset)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrInvalid)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Knobs)) {
		k, ok := dcqcn.FindKnob(name)
		if !ok {
			return nil, errorf(ErrInvalid, "DCQCN: %q is not the name of a knob; docs/dcqcn.md lists them", name)
		}
		if err := k.Set(&p, c.Knobs[name]); err != nil {
			return nil, fmt.Errorf("DCQCN: %w: %w", err, ErrInvalid)
		}
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("DCQCN: %w: %w", err, ErrInvalid)
	}
	return &p, nil
}

// resolve returns c as the adapter wants it, and c with the line rate that
// holds.
func (c DCQCN) resolve(linkRate uint64, netdev string) (rnic.DCQCN, DCQCN, error) {
	p, err := c.Params()
	if p == nil {
		return rnic.DCQCN{}, DCQCN{}, err
	}
	c.Knobs = maps.Clone(c.Knobs)
	if c.LineRate == 0 {
		c.LineRate = linkRate
	}
	if c.LineRate == 0 && netdev != "" {
		c.LineRate = uint64(speedMbps(netdev)) * 1_000_000
	}
	if c.LineRate == 0 {
		what := "the link"
		if netdev != "" {
			what = "interface " + netdev
		}
		return rnic.DCQCN{}, c, errorf(ErrInvalid, "DCQCN needs a line rate, and %s tells none; set LineRate", what)
	}
	if c.LineRate > maxLineRate {
		return rnic.DCQCN{}, c, errorf(ErrInvalid, "DCQCN: the line rate is %s, can be up to %s",
			dcqcn.FormatRate(c.LineRate), dcqcn.FormatRate(maxLineRate))
	}
	// The sockets of a host are faster than the line: each queue pair is paced.
	return rnic.DCQCN{Params: p, LineRate: c.LineRate, CNPPrio: p.CNPPrio, CNPTOS: p.CNPDSCP << 2, Paced: true}, c, nil
}

// maxLineRate is that of a knob's rate.
const maxLineRate = 1_000_000_000_000_000

// SetDCQCN changes the congestion control of the device's queue pairs while they
// run, but for those that have their own: they begin anew, at the line rate. The
// error matches ErrInvalid and nothing has changed then, or ErrClosed.
func (d *Device) SetDCQCN(c DCQCN) error {
	set, c, err := c.resolve(d.shards[0].link.Caps().LineRate, d.netdev)
	if err != nil {
		return d.named(err)
	}
	return d.do("set DCQCN", func(now clock.Time) error {
		for _, s := range d.shards { // what one refuses, the first does
			if err := s.adapter.SetDCQCN(now, set); err != nil {
				return d.named(err)
			}
		}
		d.dcqcn = c
		return nil
	})
}

// DCQCN returns the congestion control of queue pairs that have none of their
// own, with the line rate that holds.
func (d *Device) DCQCN() (c DCQCN) {
	_ = d.drv.Do(func(clock.Time) { c = d.dcqcn.clone() })
	return c
}

func (c DCQCN) clone() DCQCN {
	c.Knobs = maps.Clone(c.Knobs)
	return c
}

// SetDCQCN gives the queue pair congestion control of its own while it runs, off
// included, or with nil that of its device again. It begins anew, at the line
// rate. A LineRate of 0 takes the device's. The error matches ErrInvalid and
// nothing has changed then, or ErrClosed.
func (q *QP) SetDCQCN(c *DCQCN) error {
	d := q.pd.dev
	return d.do("set DCQCN", func(now clock.Time) error {
		if q.dead.Load() {
			return errorf(ErrClosed, "set DCQCN of QP %v: it is closed", q.Num())
		}
		own, set, err := d.ownDCQCN(c)
		if err != nil {
			return fmt.Errorf("QP %v: %w", q.Num(), err)
		}
		if err := q.shard.adapter.SetQPDCQCN(now, q.qp, set); err != nil {
			return err
		}
		q.dcqcn = own
		return nil
	})
}

// ownDCQCN resolves what a queue pair is to have instead of the device's; nil
// stays nil. Under the driver's lock.
func (d *Device) ownDCQCN(c *DCQCN) (*DCQCN, *rnic.DCQCN, error) {
	if c == nil {
		return nil, nil, nil
	}
	rate := d.shards[0].link.Caps().LineRate
	if d.dcqcn.LineRate != 0 {
		rate = d.dcqcn.LineRate
	}
	set, own, err := c.resolve(rate, d.netdev)
	if err != nil {
		return nil, nil, err
	}
	return &own, &set, nil
}

// Congestion is the state of a queue pair's congestion control at an instant.
// Rates are in bits a second.
type Congestion struct {
	QPN   ib.QPN
	DCQCN DCQCN // what holds for it: its own, or the device's
	Own   bool  // it has its own

	Rate uint64 // at which it may send now: R_C, or its rate limit if lower; 0: no limit
	// The rest is of the reaction point, all 0 when DCQCN is off.
	Rc, Rt    uint64  // current and target rate
	Alpha     float64 // 0 to 1
	TimeStage uint32  // expiries of the timer since the last cut
	ByteStage uint32  // expiries of the byte counter since the last cut
	Phase     Phase

	// Counts of the steps since DCQCN was last set for it or it left Reset.
	Cuts, Recoveries, Additive, Hyper uint32
	// Counts since it was created.
	CNPsHandled uint64 // CNPs, or acknowledgements with BECN, that it has reacted to
	CNPsSent    uint64
	Marked      uint64 // packets received with Congestion Experienced while it was on
}

// Congestion returns the state of the queue pair's congestion control now. Of a
// closed queue pair it is all zeros.
func (q *QP) Congestion() (c Congestion) {
	d := q.pd.dev
	a := q.shard.adapter
	_ = q.shard.drv.Do(func(now clock.Time) {
		if q.dead.Load() {
			return
		}
		c.QPN, c.DCQCN, c.Own = q.Num(), d.dcqcn, q.dcqcn != nil
		if c.Own {
			c.DCQCN = *q.dcqcn
		}
		c.DCQCN = c.DCQCN.clone()
		s := a.QueryRP(now, q.qp)
		n := a.QueryCongestion(q.qp)
		c.Rate = a.RateAt(now, q.qp)
		c.Rc, c.Rt, c.Alpha = s.Rc, s.Rt, float64(s.Alpha)/(1<<32)
		c.TimeStage, c.ByteStage = s.TimeStage, s.ByteStage
		c.Cuts, c.Recoveries, c.Additive, c.Hyper = s.Cuts, s.Recoveries, s.Additive, s.Hyper
		c.CNPsHandled, c.CNPsSent, c.Marked = n.Handled, n.Sent, n.Marked
		if p, err := c.DCQCN.Params(); err == nil && p != nil {
			c.Phase = p.Phase(&s, c.DCQCN.LineRate)
		}
	})
	return c
}
