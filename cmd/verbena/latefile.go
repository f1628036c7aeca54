package main

import (
	"errors"
	"os"
)

// lateFile is a file that is written when all is done, and opened before anything is
// begun: that it cannot be written is said at once, not after an hour.
type lateFile struct {
	f    *os.File
	made bool // it was not there
}

// openLate opens a file to be written later. What is in it stays until then.
func openLate(name string) (*lateFile, error) {
	_, err := os.Stat(name)
	made := errors.Is(err, os.ErrNotExist)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	return &lateFile{f: f, made: made}, nil
}

// write puts b into the file, in place of what was there, and closes it.
func (l *lateFile) write(b []byte) error {
	var err error
	if i, serr := l.f.Stat(); serr == nil && i.Mode().IsRegular() {
		err = l.f.Truncate(0)
	}
	if err == nil {
		_, err = l.f.Write(b)
	}
	return errors.Join(err, l.f.Close())
}

// drop leaves things as they were before openLate.
func (l *lateFile) drop() {
	l.f.Close()
	if l.made {
		os.Remove(l.f.Name())
	}
}
