package demo

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
)

// steps is a progress bar of a known number of steps on a terminal, and a line
// of words elsewhere.
type steps struct {
	out io.Writer
	bar *progressbar.ProgressBar
}

func newSteps(out io.Writer, what string, n int) *steps {
	s := &steps{out: out}
	if f, ok := out.(*os.File); ok && isTerminal(f) {
		s.bar = progressbar.NewOptions(n, progressbar.OptionSetWriter(out), progressbar.OptionSetDescription(what),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false))
		return s
	}
	fmt.Fprintf(out, "%s …\n", what)
	return s
}

func (s *steps) next() {
	if s.bar != nil {
		_ = s.bar.Add(1)
	}
}

func (s *steps) done() {
	if s.bar != nil {
		_ = s.bar.Finish()
	}
}

func isTerminal(f *os.File) bool {
	fi, err := f.Stat()
	return err == nil && fi.Mode()&os.ModeCharDevice != 0
}
