package probe

import (
	"context"
	"slices"
	"time"
)

// tryPaths sends on all paths. Where packets are lost, those of which nothing
// arrived are tried until chance does not explain that any more.
func (p *prober) tryPaths(ctx context.Context, w *way, to Host, echo bool) error {
	var paths []uint8
	for i := range p.cfg.Paths {
		paths = append(paths, uint8(i))
	}
	patient, interval := false, w.interval
	for done, tries := 0, p.cfg.Count; done < tries; {
		got, err := w.run(ctx, p.reachPlan(paths, tries-done, echo), interval)
		w.rec.reach = append(w.rec.reach, got...)
		if err != nil {
			return err
		}
		var d Direction
		paths = paths[:0]
		for i := range p.cfg.Paths {
			x := p.path(w.rec, i, to)
			d.Paths = append(d.Paths, x)
			if x.Seen == 0 && x.Sent > 0 {
				paths = append(paths, uint8(i))
			}
		}
		if len(paths) == 0 {
			return nil
		}
		done, interval = tries, w.interval
		tries = min(triesAt(d.lost()), pathTries)
		if len(paths) == p.cfg.Paths && !patient && w.rec.out() {
			// All paths at once: a moment without the network is no closed port.
			patient, tries = true, done+patientTries
			interval = max(w.interval, patience/time.Duration(patientTries*len(paths)))
		}
	}
	return nil
}

// tryMore sends more packets where so few are lost that chance may have made them too
// many of those that were sent.
func (p *prober) tryMore(ctx context.Context, w *way, to Host, live []uint8) error {
	sent, lost := 0, 0
	for i := range w.rec.reach {
		if t := &w.rec.reach[i]; slices.Contains(live, t.probe.Path) {
			sent++
			if !p.heard(t, to) {
				lost++
			}
		}
	}
	rounds := int(min(int64(enoughForLoss-sent), int64(moreTime/w.interval))) / len(live)
	if lost == 0 || lost >= fewLost || rounds <= 0 {
		return nil
	}
	got, err := w.run(ctx, p.reachPlan(live, rounds, false), w.interval)
	w.rec.reach = append(w.rec.reach, got...)
	return err
}

// tryClasses sends the code points, and those of which nothing arrived once
// more where packets are lost of any.
func (p *prober) tryClasses(ctx context.Context, w *way, to Host, live []uint8) error {
	var err error
	if w.rec.class, err = w.run(ctx, p.classPlan(live), w.interval); err != nil {
		return err
	}
	come := map[uint8]bool{}
	for i := range w.rec.class {
		t := &w.rec.class[i]
		come[t.probe.TOS] = come[t.probe.TOS] || p.heard(t, to)
	}
	sent, lost := 0, 0
	for i := range w.rec.reach {
		if t := &w.rec.reach[i]; slices.Contains(live, t.probe.Path) {
			sent++
			if !p.heard(t, to) {
				lost++
			}
		}
	}
	tries := codeAgain
	if lost < sent {
		tries = min(max(tries, triesAt(float64(lost)/float64(sent))), pathTries)
	}
	var again []Probe
	for i := range tries {
		for tos, ok := range come {
			if !ok {
				again = append(again, Probe{Path: live[i%len(live)], TOS: tos, Size: smallSize})
			}
		}
	}
	p.mix(again)
	more, err := w.run(ctx, again, w.interval)
	w.rec.class = append(w.rec.class, more...)
	return err
}

// tryRest does what follows the search for open paths: on a direction that is closed
// only the classes.
func (p *prober) tryRest(ctx context.Context, w *way, from, to Host) (err error) {
	live := p.live(w.rec, to)
	if len(live) == 0 {
		if w.rec.out() {
			w.rec.class, err = w.run(ctx, p.classPlan([]uint8{0}), w.interval)
		}
		return err
	}
	if err := p.tryMore(ctx, w, to, live); err != nil {
		return err
	}
	if err := p.tryClasses(ctx, w, to, live); err != nil {
		return err
	}
	if err := w.findMTU(ctx, p, from.MTU); err != nil {
		return err
	}
	for told := 0; p.cfg.Burst > 0 && told < trains && len(w.rec.trains) < maxTrains; {
		t, err := w.run(ctx, p.trainPlan(live[0]), 0)
		if err != nil {
			return err
		}
		w.rec.trains = append(w.rec.trains, t)
		if speedOf(t).told {
			told++
		}
	}
	return nil
}
