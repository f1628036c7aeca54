package udp_test

import (
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link/udp"
)

// A wait finds what arrives, before it begins and while it lasts, however long
// nobody has waited; what it misses hangs the test.
func TestWaitAfterPolling(t *testing.T) {
	a, b, port := ends(t, udp.Config{})
	tx, rx := make([]frame.Run, 1), make([]frame.Rx, 4)
	receive := func() {
		t.Helper()
		for {
			n, err := b.Recv(0, rx)
			if err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				b.Release(rx[:n])
				return
			}
			if err := b.Wait(0, clock.Never); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, polls := range []int{0, 1, 255, 256, 257, 1000, 0, 3, 600} {
		for range 3 {
			for range polls {
				if _, err := b.Recv(0, rx[:0]); err != nil {
					t.Fatal(err)
				}
			}
			sendOne(a, tx, lo1, lo2, port, 64)
			if err := b.Wait(0, clock.Never); err != nil {
				t.Fatal(err)
			}
			receive()
			waiting := make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				close(waiting)
				receive()
			}()
			<-waiting
			sendOne(a, tx, lo1, lo2, port, 64)
			<-done
		}
	}
}
