package probe

import "fmt"

// mtu says how large packets may be.
func (p *prober) mtu(d *Direction, rec *record, from Host) {
	d.MTU.Interface = from.MTU
	for _, m := range rec.mtus {
		if m.lo == 0 {
			continue // a path on which nothing passes says nothing of sizes
		}
		if d.MTU.Path == 0 || m.lo < d.MTU.Path {
			d.MTU.Path = m.lo
		}
		d.MTU.Limited = d.MTU.Limited || m.hi > 0
	}
	// Sizes are tried in steps of 4: the interface's odd bytes are not missing.
	d.MTU.RoCE = roceIn(d.MTU.Path, p.r.Address)
	noted := false
	for _, n := range rec.notices {
		switch {
		case n.What != tooBig || n.MTU <= 0:
		case n.MTU < d.MTU.Path:
			if noted {
				continue
			}
			noted = true
			p.r.Notes = append(p.r.Notes, fmt.Sprintf("an ICMP error from %v says MTU %d, and yet %s packets of %d bytes arrive: it is forged, or about a way that is not used any more",
				n.From, n.MTU, rec.name(), d.MTU.Path))
		case d.MTU.Told == 0 || n.MTU < d.MTU.Told:
			d.MTU.Told = n.MTU
		}
	}
}

// mtuByPath reports whether paths differ in the size that passes.
func (d *Direction) mtuByPath() bool {
	first := 0
	for _, x := range d.Paths {
		switch {
		case x.MTU == 0:
		case first == 0:
			first = x.MTU
		case x.MTU != first:
			return true
		}
	}
	return false
}
