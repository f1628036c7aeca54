// Package poll is how a link that has sockets waits: a goroutine parks, not a
// thread, until one of them is ready, until an instant, or until it is woken.
//
// It reads and writes no socket and closes none. Links call it: one goroutine at a
// time in Wait; Wake, Nudge and Close from anywhere.
//
//	sockets ── epoll set ── the runtime's poller ── the goroutine in Wait
//	        │
//	        └─ heard only while somebody waits now and then: a thread of the runtime
//	           wakes for each packet else, beside a program that polls
//
// Read poll_linux.go; there is nothing for other systems.
package poll
