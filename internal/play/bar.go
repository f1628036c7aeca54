package play

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/verbena-rdma/verbena/fabric"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// refresh is the time between two looks at a run.
const refresh = 150 * time.Millisecond

// Bar shows how far a run has come: virtual time, how much of it a second of
// ours makes, packets, and the time left. A nil Bar shows nothing. It has one
// owner at a time.
type Bar struct {
	out   io.Writer
	bar   *progressbar.ProgressBar
	what  string
	first time.Time // of this run
	hops  uint64
	at    time.Time // of the last look
	now   sim.Time
}

// NewBar returns a bar on a terminal; nil where out is none.
func NewBar(out io.Writer) *Bar {
	if !IsTerminal(out) {
		return nil
	}
	return &Bar{out: out}
}

// IsTerminal reports whether somebody looks at what is written.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || f.Name() == os.DevNull {
		return false
	}
	fi, err := f.Stat()
	return err == nil && fi.Mode()&os.ModeCharDevice != 0
}

const barSteps = 1000

func (b *Bar) begin(what string) {
	if b == nil {
		return
	}
	*b = Bar{out: b.out, what: what, first: time.Now()}
	b.at = b.first
	b.bar = progressbar.NewOptions(barSteps, progressbar.OptionSetWriter(b.out), progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(20), progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
		progressbar.OptionClearOnFinish())
}

// end takes the bar away.
func (b *Bar) end() {
	if b == nil || b.bar == nil {
		return
	}
	_ = b.bar.Finish()
	b.bar = nil
}

// show draws the bar with what a run has reached.
func (b *Bar) show(at time.Time, run *fabric.Run, share float64) {
	if b == nil || b.bar == nil {
		return
	}
	b.bar.Describe(b.text(at, run.S.Now(), hops(run), share))
	_ = b.bar.Set(int(share * barSteps))
}

// text says how far it has come: "incast 3.20 ms, 810 us/s, 1.2 M hops/s, 4 s left".
func (b *Bar) text(at time.Time, now sim.Time, hops uint64, share float64) string {
	s := fmt.Sprintf("%s %s", b.what, timeText(now))
	if d := at.Sub(b.at).Seconds(); d > 0 {
		s += fmt.Sprintf(", %s us/s, %s hops/s", countText(uint64((now-b.now).Micros()/d)), countText(uint64(float64(hops-b.hops)/d)))
	}
	b.at, b.now, b.hops = at, now, hops
	if spent := at.Sub(b.first); share > 0.005 {
		s += fmt.Sprintf(", %s left", LeftText(time.Duration(float64(spent)*(1-share)/share)))
	}
	return s
}

// LeftText writes a time left, no finer than it can be known.
func LeftText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()+0.5))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()+0.5))
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}

// hops counts the data packets that links have carried so far.
func hops(run *fabric.Run) uint64 {
	n := uint64(0)
	for i := range run.Ports {
		for _, p := range run.Ports[i] {
			n += p.DataTx()
		}
	}
	return n
}
