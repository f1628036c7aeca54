//go:build !linux

package rdmacm_test

import "errors"

// runKilledPeer is for Linux, where the test is that starts it.
func runKilledPeer(string) error { return errors.ErrUnsupported }
