package source

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
)

// Failure is what a host said instead of an answer: the name of an errno, or one line
// of text. ENOENT matches [fs.ErrNotExist]; EACCES and EPERM match
// [fs.ErrPermission]; EOPNOTSUPP and ENOTSUP match [errors.ErrUnsupported].
type Failure string

// Failures that are told apart.
const (
	ErrNoEntry     Failure = "ENOENT"
	ErrDenied      Failure = "EACCES"
	ErrUnsupported Failure = "EOPNOTSUPP"
)

// Error is the text itself.
func (f Failure) Error() string { return string(f) }

// Is reports whether a failure is of the kind of target.
func (f Failure) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return f == ErrNoEntry
	case fs.ErrPermission:
		return f == ErrDenied || f == "EPERM"
	case errors.ErrUnsupported:
		return f == ErrUnsupported || f == "ENOTSUP" || f == "ENOTTY"
	}
	return false
}

// Failed turns an error of the system into a [Failure]: the errno's name if there is
// one, else the text without the name of the file. A nil error stays nil.
func Failed(err error) error {
	if err == nil {
		return nil
	}
	var f Failure
	if errors.As(err, &f) {
		return f
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		if name := errnoName(errno); name != "" {
			return Failure(name)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNoEntry
	case errors.Is(err, fs.ErrPermission):
		return ErrDenied
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return failureOf(err.Error())
}

// failureOf is a failure of a text: its first line, bounded and printable.
func failureOf(text string) Failure {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if len(text) > 300 {
		text = text[:300]
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return '?'
		}
		return r
	}, text)
	if text = strings.TrimSpace(text); text == "" {
		text = "failed without a reason"
	}
	return Failure(text)
}
