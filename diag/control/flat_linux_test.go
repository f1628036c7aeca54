package control_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/diag/control"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// atATime is how many connections a server serves at a time, as docs/control.md has it.
const atATime = 4

// held is what a process holds: file descriptors and goroutines.
type held struct{ files, routines int }

// holding counts what this process holds, the directory that it reads included.
func holding(t *testing.T) held {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return held{len(list), runtime.NumGoroutine()}
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !holds(); runtime.Gosched() {
		if time.Now().After(until) {
			t.Fatalf("not within a minute: %s; now %+v", what, holding(t))
		}
	}
}

// waitBack waits until this process holds no more than before.
func waitBack(t *testing.T, before held, when string) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%s: no more than %+v", when, before), func() bool {
		now := holding(t)
		return now.files <= before.files && now.routines <= before.routines
	})
}

func dial(t *testing.T, name string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

// What a process holds is the same after 1,000 connections as before, most of which
// leave half-way, and no more than few are served at a time.
func TestConnectionsLeaveNothing(t *testing.T) {
	const rounds, crowd = 125, 8
	small, big := device("ctl_flat"), device("ctl_flat")
	big.Faults = []snapshot.Fault{{Rule: strings.Repeat("x", 220<<10)}} // more than a socket takes at once
	var reports, within, most atomic.Int32
	s, err := control.Listen(func(w control.Want) snapshot.Device {
		n := within.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		reports.Add(1)
		within.Add(-1)
		if w.Resources {
			return big
		}
		return small
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if a := talk(t, s.Name(), `{"version":1}`+"\n"); a["device"] == nil { // the runtime has its poller now
		t.Fatalf("the first answer: %v", a)
	}
	var before held
	waitFor(t, "the first connection ends", func() bool {
		last := before
		before = holding(t)
		return last == before && before.files > 0
	})

	const request, long = `{"version":1}` + "\n", `{"version":1,"resources":true}` + "\n"
	asked := reports.Load()
	leave := func(net.Conn, int32) {}
	honest := func(c net.Conn, _ int32) {
		if b, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(b), "}\n") {
			t.Errorf("the whole answer: %d bytes, %v", len(b), err)
		}
	}
	clients := [crowd]struct {
		say string
		do  func(c net.Conn, asks int32)
	}{
		{"", leave},
		{request[:9], leave},
		{request, honest},
		{"", leave},
		{request[:len(request)-1], leave},
		{request, honest},
		{long, func(c net.Conn, _ int32) { // closes in the middle of the answer
			if _, err := io.ReadFull(c, make([]byte, 1000)); err != nil {
				t.Error(err)
			}
		}},
		{long, func(_ net.Conn, asks int32) { // reads nothing
			waitFor(t, "the request is heard", func() bool { return reports.Load() >= asks })
		}},
	}
	for round := range rounds {
		var conns [crowd]net.Conn
		var asks [crowd]int32 // how many have asked up to this one
		of := func(i int) int { return (round + i) % crowd }
		for i := range conns {
			conns[i] = dial(t, s.Name())
			if _, err := io.WriteString(conns[i], clients[of(i)].say); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(clients[of(i)].say, "\n") {
				asked++
			}
			asks[i] = asked
		}
		for i, c := range conns { // in the order in which they are accepted
			if now := holding(t); now.files > before.files+crowd-i+atATime {
				t.Fatalf("round %d: %d clients hold %d files, %d without them; %d are served at a time", round, crowd-i, now.files, before.files, atATime)
			}
			clients[of(i)].do(c, asks[i])
			c.Close()
		}
		waitBack(t, before, fmt.Sprintf("after round %d", round))
	}
	if got := reports.Load(); got < asked { // other programs of this host may ask, too
		t.Errorf("the device was asked %d times, want %d", got, asked)
	}
	if n := most.Load(); n > atATime {
		t.Errorf("the device was asked by %d at a time, want %d at most", n, atATime)
	}
}

// A crowd waits in the kernel: it costs the process four connections, not one each.
func TestCrowdWaitsOutside(t *testing.T) {
	s, err := control.Listen(func(control.Want) snapshot.Device { return device("ctl_crowd") })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	talk(t, s.Name(), `{"version":1}`+"\n")
	var before held
	waitFor(t, "the first connection ends", func() bool {
		last := before
		before = holding(t)
		return last == before && before.files > 0
	})
	var conns []net.Conn
	for range 100 {
		conns = append(conns, dial(t, s.Name()))
	}
	waitFor(t, "somebody is served", func() bool { return holding(t).files > before.files+len(conns) })
	for i, c := range conns {
		if now, want := holding(t).files, before.files+len(conns)-i+atATime; now > want {
			t.Fatalf("%d clients: %d files, want %d at most", len(conns)-i, now, want)
		}
		c.Close()
	}
	waitBack(t, before, "after the crowd")
}

// Asking leaves nothing with the client either, whatever the servers do.
func TestAskingLeavesNothing(t *testing.T) {
	for i, answer := range []string{"", `{"version":1,"device":{"na`, "silence"} {
		l, err := net.Listen("unix", fmt.Sprintf("@verbena/1/%d/%d-%016x", os.Geteuid(), os.Getpid(), 100+i))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		t.Cleanup(func() { l.Close(); <-done })
		go func() {
			defer close(done)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				if answer == "silence" {
					_, _ = io.Copy(io.Discard, c) // until the client has had enough
				} else {
					_, _ = io.WriteString(c, answer)
				}
				c.Close()
			}
		}()
	}
	var before held
	for i := range 50 {
		if _, err := control.Devices(control.Query{Resources: true, Timeout: 10 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			waitFor(t, "the first question ends", func() bool {
				last := before
				before = holding(t)
				return last == before
			})
			continue
		}
		waitBack(t, before, fmt.Sprintf("question %d", i))
	}
}
