// Command agent is the first process of a guest: it mounts, loads modules, brings the network and the rxe device
// up, and then serves the harness's commands over TCP (see guest/internal/channel). It is built static into the
// initramfs as /init and is of no use elsewhere.
//
// Two processes run it: process 1 sets up and then only reaps orphans; its child serves. They are two because a
// process that waits for any child would steal the exit status of the commands it runs.
//
// Read init_linux.go for the set-up and serve_linux.go for the commands.
package main

import (
	"fmt"
	"os"
)

// The lines on the console that the harness waits for; guest/console.go has the same.
const (
	markReady  = "VERBENA-GUEST-READY"
	markFailed = "VERBENA-GUEST-FAILED"
)

func main() {
	if os.Getpid() == 1 {
		boot()
		return
	}
	fmt.Println(markFailed+":", serve()) // it returns only to say what failed
	os.Exit(1)
}
