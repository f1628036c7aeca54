// Package freeport gives a test a port that nobody takes before the test does.
//
// A port that the kernel chose, and that was given back, may be chosen again at once:
// for a connection of another test, whose processes run beside this one. These ports lie
// below those that the kernel chooses from, and are held by a name until the test ends.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"testing"
)

// The ports that are given lie from first to last, and below the kernel's own choice.
const first, last = 30000, 32767

// Get returns a port that is free for TCP and UDP at all addresses of the host.
func Get(t testing.TB) int {
	t.Helper()
	p, release, err := get(most())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return p
}

// most is the highest port that may be given.
func most() int {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	low := 0
	if _, scan := fmt.Sscan(string(b), &low); err != nil || scan != nil || low <= first {
		return last // another system, or one where the kernel chooses from all
	}
	return min(last, low-1)
}

func get(most int) (port int, release func(), err error) {
	n := most - first + 1
	start := rand.IntN(n)
	for i := range n {
		port = first + (start+i)%n
		var name net.Listener
		if runtime.GOOS == "linux" {
			if name, err = net.Listen("unix", fmt.Sprintf("@verbena-test-port/%d", port)); err != nil {
				continue // another test has it
			}
		}
		if err = free(port); err == nil {
			return port, func() {
				if name != nil {
					_ = name.Close()
				}
			}, nil
		}
		if name != nil {
			_ = name.Close()
		}
	}
	return 0, nil, fmt.Errorf("no port of %d to %d is free: %w", first, most, err)
}

// free reports whether nobody uses a port.
func free(port int) error {
	at := fmt.Sprintf(":%d", port)
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	defer l.Close()
	u, err := net.ListenPacket("udp", at)
	if err != nil {
		return err
	}
	return u.Close()
}
