package listing

import "fmt"

// Error is what a program says and how it ends where it refuses its command line.
// What it printed before that is returned beside it.
type Error struct {
	Text   string // one line, or several as the original has them; without the last end of line
	Status int    // exit status, may be 0: some originals end so
}

func (e *Error) Error() string { return e.Text }

func fail(status int, format string, args ...any) error {
	return &Error{Text: fmt.Sprintf(format, args...), Status: status}
}
