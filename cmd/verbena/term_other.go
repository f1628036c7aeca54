//go:build !unix || solaris || aix

package main

import "os"

// terminalSize is not known here: frames follow one another.
func terminalSize(*os.File) (width, height int, ok bool) { return 0, 0, false }
