// Package nlask asks over netlink: one question, one whole answer. All packages of
// diag/source that speak netlink ask through it.
//
// It owns the netlink header (RFC 3549 §2.3.2), the socket, and what bounds an answer:
// how many messages, bytes and seconds ([Limits]). An answer beyond a limit is an error
// that names the limit, never a part of an answer. What is no answer to the question
// (another sequence number, another sender than the kernel) is left out and counts.
//
// It asks again where the answer is not whole: a dump during which the objects changed
// (NLM_F_DUMP_INTR), an interrupted call, a receive buffer that ran over. So it must
// never ask something that changes the host: an answer may be asked for several times.
// A socket in the middle of an answer that was given up is closed, and the next question
// opens another.
//
// Reading order: nlask.go (asking), message.go (cutting a datagram), socket_linux.go.
// Package nlfake is a kernel for tests.
package nlask
