//go:build !linux

package source

import (
	"errors"
	"fmt"
	"runtime"
)

type clients struct{}

func (clients) close() {}

func supported() error {
	return fmt.Errorf("this host runs %s; reading a live host needs Linux (a recording can be read anywhere): %w", runtime.GOOS, errors.ErrUnsupported)
}

func (l *Live) kernel(string) (any, error) { return nil, supported() }
