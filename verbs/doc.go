// Package verbs is what a Go application holds: a software RNIC that lives in
// the process, and its protection domains, memory regions, completion queues,
// queue pairs and address handles, with the meaning that the InfiniBand
// specification and libibverbs give them.
//
//	Device ─┬─ PD ─┬─ MR            registered memory and its keys
//	        │      ├─ MW            rights to a part of a region, given by work requests
//	        │      ├─ QP            RC, UC or UD: a send and a receive queue
//	        │      ├─ SRQ           a receive queue that several QPs share
//	        │      └─ AH            where a UD queue pair sends
//	        ├─ CQ                   completions
//	        ├─ CompChannel          events of armed CQs
//	        └─ asynchronous events  (NextEvent)
//
// [Open] makes a device on an IP address of this host. It needs no kernel
// module, no privileges and no set-up: 127.0.0.1 and 127.0.0.2 are two hosts.
// The UDP port 4791 of an address belongs to one process at a time. [Connect]
// joins two queue pairs with the help of any net.Conn; everything that it does
// can be done by hand with [QP.ToInit], [QP.ToRTR], [QP.ToRTS] or [QP.Modify].
// The package's first example is a whole program.
//
// # Progress
//
// Whoever polls drives. [CQ.Poll] runs a bounded slice of the device's work when
// it finds no completion, and [Device.Progress] does so for programs that poll
// memory; a program that calls either in a loop pays for no other goroutine.
// [QP.PostSend] sends what can be sent before it returns.
//
// A program that does none of these is served all the same: after one to two
// milliseconds without a poll ([driver.Takeover]) the device's own goroutine
// takes over, answers READs, WRITEs and ATOMICs of peers and fires timers, until
// somebody polls again. What a poll has received may be acknowledged by the next
// poll or post, or by that goroutine; so a peer may see the last completion of a
// conversation by that much later.
//
// [CQ.Wait], [CompChannel.Wait] and [Device.NextEvent] block. They hand the
// device to its goroutine at once; the first two poll for [SpinTime] to
// [SpinTimeMost] before they park. [CQ.Arm] hands it over, too, since the program is about to block.
//
// # Memory
//
// A region refers to Go memory or to memory from [Alloc] and keeps it alive. From
// the post until the completion, the memory of a request belongs to the device:
// do not write what is being sent, do not read what is being received. A peer
// that has the rkey reads and writes the region at any time until [MR.Close].
//
// A program may watch its memory for a peer's WRITE or ATOMIC. Then it reads by
// atomic loads (package sync/atomic), the last bytes of the message first: they
// become visible last, aligned words whole. Where both ends live in one process,
// a completion at one end orders the memory of the other end, also for the race
// detector.
//
// # Concurrency
//
// All methods of all types may be called from any goroutine at any time, Close
// included. Each queue has its own lock; requests that two goroutines post to
// one queue do not mix within a batch. Posting, polling and waiting allocate
// nothing.
//
// # Errors
//
// A control call or a post that is refused returns an error that names object,
// attribute, value and limit, matches one of this package's variables with
// errors.Is, and has changed nothing. What goes wrong later is a status in a
// completion. What a peer or the network does wrong is counted: [Device.Stats],
// [Device.LinkCounters].
//
// Closing an object that another one uses is refused ([ErrBusy]); closing the
// device closes all.
//
// # Being seen
//
// [Device.Snapshot] describes a device with all that was made of it. Other programs of
// the same user get it at a control socket, read only: docs/control.md.
//
// Read device.go, then pd.go, mr.go, mw.go, cq.go, qp.go, srq.go, mcast.go, path.go, connect.go; inspect.go and inspectlist.go have the snapshot; gid.go
// has the one rule that picks a GID.
package verbs
