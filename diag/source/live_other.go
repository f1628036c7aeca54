//go:build !linux

package source

import (
	"errors"
	"runtime"
)

type clients struct{}

func (clients) close() {}

func supported() error {
	return errors.New("this host runs " + runtime.GOOS + "; reading a live host needs Linux (a recording can be read anywhere)")
}

func (l *Live) kernel(string) (any, error) { return nil, supported() }
