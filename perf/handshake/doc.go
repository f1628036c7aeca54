// Package handshake speaks the two little protocols by which measuring
// programs find each other over TCP: the one of perftest (version 6.06 of the
// protocol, as in perftest 4.5) and the one line of libibverbs' pingpong
// examples. Its peers are Debian's ib_write_bw, ibv_rc_pingpong and the like,
// and ourselves.
//
// It owns the bytes and their order, and nothing else: no sockets are opened
// here, no deadlines set, no queue pair touched. Callers give an
// io.ReadWriter, a role, and act between the steps.
//
// Every step of perftest's protocol is one exchange of equal length: the
// client writes and then reads, the server reads and then writes. Each message
// leaves in one Write, because perftest expects one read to return it whole.
//
//	step            bytes      content
//	version         16         "6.06", zero padded
//	(ours only)     4+n        what this end runs, JSON; see Extension
//	cycle buffer    4          page size, big endian; the larger counts
//	cache line      4          likewise
//	MTU             2          "1" to "5", the code of the path MTU; the smaller counts
//	key             108 or 59  one a queue pair: QPN, PSN, rkey, address, GID
//	sync            108 or 59  a key again: both ends have come this far
//	report          5 × 8      size, iterations, peak, average, message rate
//	done            5          "done", after a last sync; nobody reads it
//
// Which steps a program takes, and how often, is in [Plan]: the order differs
// between the programs, and a peer that runs another program, another number
// of queue pairs or another mode is recognised only by a step that does not
// fit. The error then says which step and what to compare.
//
// Two ends of this project recognise each other by a mark behind the zero that
// ends the version text, where no other reader looks, and then exchange what
// they are about to run: mismatches are named, and data can be verified.
//
// Read key.go (codecs), session.go (perftest), pingpong.go.
package handshake
