//go:build !unix || solaris || aix

package main

import (
	"errors"
	"os"
)

// terminalSize is not known here: frames follow one another.
func terminalSize(*os.File) (width, height int, ok bool) { return 0, 0, false }

func notifyResize(chan os.Signal) {}

func notifyJob(chan os.Signal) {}

func stopNotify(chan os.Signal) {}

func isStop(os.Signal) bool { return false }

func stopSelf(chan os.Signal) {}

func keysAtOnce(*os.File) (func(), error) { return nil, errors.ErrUnsupported }

func readKeys(*os.File, []byte) (int, error) { return 0, errors.ErrUnsupported }
