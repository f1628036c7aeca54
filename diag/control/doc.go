// Package control lets other programs of the same user see the RNICs that a process
// holds: a read-only socket in each such process, and the client that asks them all.
//
// A [Server] listens at an abstract Unix socket, whose scope is the network namespace
// like that of the UDP port, and answers one request a connection:
//
//	@verbena/1/<uid>/<pid>-<16 random digits>
//	→ {"version":1,"resources":true}\n
//	← {"version":1,"opened":…,"comm":"…","device":{…}}\n     or {"version":1,"error":"…"}\n
//
// The kernel says who is at the other end (SO_PEERCRED): another user, root included,
// is hung up on, and a client believes no server of another user. Nothing can be
// changed over the socket, and keys are never told.
//
// Both ends are bounded: a request is at most [MaxRequest] bytes and an answer
// [MaxAnswer]; a connection lasts [Patience] at most and few are served at a time.
// [Devices] asks at most [MaxServers] of them, all within its timeout. A process that
// is dead has no socket and costs nothing.
//
// The package must not know what an RNIC is: verbs gives [Listen] a function, once per
// device. It imports snapshot only. Called by verbs, and by cmd/verbena, which gives
// [Devices] to diag/source as its answer to QueryVerbena.
//
// Reading order: protocol.go, server.go, client.go; server_linux.go and exchange_linux.go
// are the sockets themselves, peer_linux.go has what only Linux can tell.
package control
