package sweep

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/verbena-rdma/verbena/internal/play"
)

// bar shows on a terminal how many runs of a sweep have ended, and what those
// under way have done. It may be used by several goroutines.
type bar struct {
	mu    sync.Mutex
	bar   *progressbar.ProgressBar // nil: nobody looks
	what  string
	total int
	ended int // runs that have ended, earlier ones too
	first time.Time
	last  time.Time
	done  float64 // runs that have ended since first
	under []*share
}

// share is how much of a run under way is done.
type share struct {
	b    *bar
	part float64
}

const (
	barSteps = 1000
	refresh  = 150 * time.Millisecond // between two pictures
)

func newBar(out io.Writer, what string, total, ended int) *bar {
	b := &bar{what: what, total: total, ended: ended, first: time.Now()}
	if out != nil && play.IsTerminal(out) {
		b.bar = progressbar.NewOptions(barSteps, progressbar.OptionSetWriter(out), progressbar.OptionSetDescription(what),
			progressbar.OptionSetWidth(20), progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false), progressbar.OptionClearOnFinish())
	}
	return b
}

// end takes the bar away.
func (b *bar) end() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}

// start is called when a run begins.
func (b *bar) start() *share {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &share{b: b}
	b.under = append(b.under, s)
	return s
}

// share notes how much of the run is done.
func (s *share) share(part float64) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.part = part
	s.b.show()
}

// done is called when the run has ended.
func (s *share) done() {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.b.under = slices.DeleteFunc(s.b.under, func(x *share) bool { return x == s })
	s.b.ended++
	s.b.done++
	s.b.show()
}

func (b *bar) show() {
	now := time.Now()
	if b.bar == nil || b.total == 0 || now.Sub(b.last) < refresh {
		return
	}
	b.last = now
	part := 0.0
	for _, s := range b.under {
		part += s.part
	}
	b.bar.Describe(b.text(now.Sub(b.first), b.done+part))
	_ = b.bar.Set(min(barSteps, int((float64(b.ended)+part)/float64(b.total)*barSteps)))
}

// text says how far the sweep has come: "incast: 12 of 40 runs, 3 min left".
func (b *bar) text(spent time.Duration, done float64) string {
	s := fmt.Sprintf("%s: %d of %d runs", b.what, b.ended, b.total)
	if left := float64(b.total) - float64(b.ended) + b.done - done; done > 0.05 {
		s += ", " + play.LeftText(time.Duration(float64(spent)*left/done)) + " left"
	}
	return s
}
