package main

import (
	"io"
	"os"
	"sync"
)

// Sequences of ANSI terminals: the other screen without a cursor, and back; home, and
// to the end of line or screen.
const (
	termEnter = "\x1b[?1049h\x1b[?25l"
	termLeave = "\x1b[?25h\x1b[?1049l"
	termHome  = "\x1b[H"
	termLine  = "\x1b[K\n" // the terminal adds the carriage return
	termClear = "\x1b[J"
)

// screen is a terminal that frames are drawn on in place. A nil screen is none: its
// channels never deliver.
type screen struct {
	out    *os.File
	colour bool

	in      *os.File // where keys come from, nil without
	keysMu  sync.Mutex
	restore func() // what the terminal was like
	end     chan struct{}
	quitted chan struct{} // somebody has typed q
	winch   chan os.Signal
	job     chan os.Signal // Ctrl-Z, and the shell's fg
	wait    sync.WaitGroup
}

// openScreen takes the terminal; close gives it back as it was. Keys are read from in
// where that is a terminal.
func openScreen(in io.Reader, out *os.File, colour bool) *screen {
	s := &screen{
		out: out, colour: colour, restore: func() {}, end: make(chan struct{}), quitted: make(chan struct{}),
		winch: make(chan os.Signal, 1), job: make(chan os.Signal, 4),
	}
	notifyResize(s.winch)
	notifyJob(s.job)
	if f, ok := in.(*os.File); ok {
		if restore, err := keysAtOnce(f); err == nil {
			s.in, s.restore = f, restore
			s.wait.Go(func() { s.keys(f) })
		}
	}
	_, _ = io.WriteString(out, termEnter)
	return s
}

// keys waits for q. keysAtOnce has made reads end by themselves after a while.
func (s *screen) keys(f *os.File) {
	var b [16]byte
	for {
		select {
		case <-s.end:
			return
		default:
		}
		s.keysMu.Lock() // not while the terminal is the shell's
		n, err := readKeys(f, b[:])
		s.keysMu.Unlock()
		if err != nil {
			return // the terminal has gone: so does the program, by its signal
		}
		for _, c := range b[:n] {
			if c == 'q' || c == 'Q' || c == 3 || c == 4 { // also what Ctrl-C and Ctrl-D send where they are no signals
				close(s.quitted)
				return
			}
		}
	}
}

func (s *screen) close() {
	close(s.end)
	s.wait.Wait()
	stopNotify(s.winch)
	stopNotify(s.job)
	s.restore()
	_, _ = io.WriteString(s.out, termLeave)
}

func (s *screen) quit() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.quitted
}

func (s *screen) resized() <-chan os.Signal {
	if s == nil {
		return nil
	}
	return s.winch
}

// jobs delivers what the shell's job control wants; the receiver calls obey with it.
func (s *screen) jobs() <-chan os.Signal {
	if s == nil {
		return nil
	}
	return s.job
}

// obey gives the terminal back and stops this process, as Ctrl-Z wants, or takes the
// terminal again after it was stopped in another way. When it returns the screen is this
// program's and empty: what was on it has to be drawn again.
func (s *screen) obey(sig os.Signal) {
	s.keysMu.Lock()
	defer s.keysMu.Unlock()
	s.restore()
	if isStop(sig) {
		_, _ = io.WriteString(s.out, termLeave)
		stopSelf(s.job)
	}
	if s.in != nil { // before anything is written: this waits for fg
		if restore, err := keysAtOnce(s.in); err == nil {
			s.restore = restore
		}
	}
	_, _ = io.WriteString(s.out, termEnter)
}

// size is the screen's now.
func (s *screen) size() (width, height int) {
	width, height, ok := terminalSize(s.out)
	if !ok {
		return 80, 24
	}
	return width, height
}

// draw puts lines in place of those before, with one write: nothing flickers.
func (s *screen) draw(text []byte) error {
	out := []byte(termHome)
	for _, c := range text {
		if c == '\n' {
			out = append(out, termLine...)
			continue
		}
		out = append(out, c)
	}
	_, err := s.out.Write(append(out, termClear...))
	return err
}
