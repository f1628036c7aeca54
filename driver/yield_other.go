//go:build !linux

package driver

import "runtime"

// yieldThread lets others run, as far as Go can say so here.
func yieldThread() { runtime.Gosched() }
