// Package driver owns real time: the loop that joins one adapter (package rnic)
// and one link, the lock that makes one goroutine at a time their owner, and
// the one goroutine that runs the loop when nobody else does.
//
// # Who drives
//
// Whoever holds the lock runs slices: receive a batch, let the adapter have it,
// fire the timers that are due, send what may be sent. The time is read once a
// slice. A slice allocates nothing and is bounded, by [rxBatch] received frames
// and about [txBytes] sent bytes.
//
//   - A poller ([Driver.Poll]) tries the lock and runs a slice. It never waits
//     for another goroutine.
//   - A poster ([Driver.Kick]) tries the lock and runs the sending half of a
//     slice: what it posted leaves before Kick returns. If somebody holds the
//     lock, the holder finds the doorbell after it has let go.
//   - A control call ([Driver.Do]) waits for the lock.
//   - The engine goroutine does the rest.
//
// # The engine goroutine
//
//	        somebody polls                     nothing to do
//	passive ◀────────────── driving ─────────────────────▶ waiting in the link
//	   │                      ▲  ▲                            │
//	   └──────────────────────┘  └────────────────────────────┘
//	 nobody polled for Takeover,      frame, deadline, Wake
//	 or Park
//
// While a program polls, the goroutine is passive: it wakes once in [Takeover]
// to see whether that is still so, and is not woken by frames. One-sided
// traffic and timers of a program that stopped polling therefore rest for
// Takeover to twice Takeover, once; from then on the goroutine serves them as
// they come. A program that is about to block says so with [Driver.Park], and
// the goroutine takes over at once. An idle device wakes nobody: the goroutine
// sleeps in the link, without the lock, until a frame or the adapter's
// deadline.
//
// # Two wake-ups that must not be lost
//
// A doorbell: the poster rings, then tries the lock; the holder unlocks, then
// looks at the doorbell. Whichever order the two take, one of them sees the
// other (leave in slice.go).
//
// A deadline: the goroutine writes down, under the lock, the instant until
// which it will sleep in the link. Whoever leaves the adapter with an earlier
// deadline, or with something still to send, wakes the link, and the link keeps
// a Wake that comes before the Wait.
//
// The adapter's hooks (completions, events) are called with the lock held; they
// must not call the driver.
//
// Read driver.go, slice.go, engine.go.
package driver
