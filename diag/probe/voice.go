package probe

import (
	"context"
	"net/netip"
	"slices"
	"time"
)

// voice is one end's mouths for one peer, by path.
type voice struct {
	e      *endpoint
	to     netip.AddrPort
	ports  []uint16 // as wanted
	mouths []*mouth // by path; another port where the wanted one is in use
}

// voices opens a mouth for each source port.
func (e *endpoint) voices(local, peer netip.Addr, ports []uint16) (*voice, error) {
	v := &voice{e: e, to: netip.AddrPortFrom(peer, e.port), ports: slices.Clone(ports)}
	for _, p := range ports {
		m, err := e.mouth(local, p)
		if err != nil {
			v.close()
			return nil, err
		}
		v.mouths = append(v.mouths, m)
	}
	return v, nil
}

func (v *voice) close() {
	for _, m := range v.mouths {
		v.e.release(m)
	}
}

// sendAgain is how often a packet is tried again that an ICMP error about an
// earlier one kept back: each try takes one such error away.
const sendAgain = 16

// send sends probes, one each interval, and says what became of each.
func (v *voice) send(ctx context.Context, t token, probes []Probe, interval time.Duration) []Sent {
	out := make([]Sent, 0, len(probes))
	start := time.Now()
	for i, p := range probes {
		if !pause(ctx, start.Add(time.Duration(i)*interval)) {
			break
		}
		m := v.mouths[p.Path]
		d := datagram{kind: kindProbe, echo: p.Echo, tos: p.TOS, path: p.Path, seq: p.Seq, token: t, sentAt: time.Now().UnixNano()}
		err := m.say(&d, v.to, p.Size-ipHeader(v.to.Addr())-udpLen)
		for range sendAgain {
			if !pending(err) {
				break
			}
			// The socket may tell of an ICMP error about an earlier packet.
			v.e.collect(m)
			d.sentAt = time.Now().UnixNano()
			err = m.say(&d, v.to, p.Size-ipHeader(v.to.Addr())-udpLen)
		}
		out = append(out, Sent{Seq: p.Seq, At: d.sentAt, Port: m.local.Port(), Err: errname(err)})
	}
	v.collect()
	return out
}

// answer sends an echo from the port that the probe came from. Other ports are
// not opened for it.
func (v *voice) answer(d *datagram, port uint16, n int) {
	if i := slices.Index(v.ports, port); i >= 0 {
		_ = v.mouths[i].say(d, v.to, n)
	}
}

// collect brings ICMP errors to the sessions.
func (v *voice) collect() {
	for _, m := range v.mouths {
		v.e.collect(m)
	}
}

// pause waits until an instant; it is false if ctx ended before.
func pause(ctx context.Context, until time.Time) bool {
	d := time.Until(until)
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
