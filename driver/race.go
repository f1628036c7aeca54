//go:build race

package driver

import (
	"runtime"
	"unsafe"
)

// wire stands for all that connects the devices of one process outside its
// memory. What a device receives happened after what another sent; the race
// detector cannot see that through a socket, so it is told, as package syscall
// tells it for reads and writes.
var wire byte

func raceSend()    { runtime.RaceReleaseMerge(unsafe.Pointer(&wire)) }
func raceReceive() { runtime.RaceAcquire(unsafe.Pointer(&wire)) }
