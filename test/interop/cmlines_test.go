//go:build linux

package interop

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
)

// lines keeps what a program prints, for those who wait for a word in it.
type lines struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	ended   bool
	changed chan struct{}
}

// newLines returns one and the same thing twice: to read from and to write to.
func newLines() (r, w *lines) {
	l := &lines{changed: make(chan struct{}, 1)}
	return l, l
}

// Write implements io.Writer.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.signal()
	return l.buf.Write(b)
}

func (l *lines) signal() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// end says that nothing more will come.
func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.signal()
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// await returns when word has been printed.
func (l *lines) await(ctx context.Context, word string) error {
	for {
		l.mu.Lock()
		found, ended := strings.Contains(l.buf.String(), word), l.ended
		l.mu.Unlock()
		switch {
		case found:
			return nil
		case ended:
			return errors.New("the program has ended")
		}
		select {
		case <-l.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
