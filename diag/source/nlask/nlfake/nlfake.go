// Package nlfake is a kernel for tests of netlink clients: it answers a question with
// datagrams, and can answer wrongly in every way that a socket allows.
//
// It owns nothing of a real kernel. Tests use it; nothing else may.
package nlfake

import (
	"encoding/binary"
	"os"
	"time"

	"github.com/mdlayher/netlink"

	"github.com/verbena-rdma/verbena/diag/source/nlask"
)

// Reply is one datagram, or an error of the system instead.
type Reply struct {
	Data   []byte
	Sender uint32 // 0 is the kernel
	Err    error
}

// Kernel answers questions. Answer is called for each, with how many were asked before,
// and returns the datagrams: one for each call of next, ok is false after the last.
type Kernel struct {
	Answer func(asked int, question netlink.Message) (next func() (Reply, bool))

	Asked  int // questions
	Opened int // sockets
	Closed int
}

// Dial opens a Conn to the kernel.
func (k *Kernel) Dial(limits nlask.Limits) *nlask.Conn {
	c, err := nlask.New(func() (nlask.Socket, error) {
		k.Opened++
		return &socket{k: k}, nil
	}, limits)
	if err != nil {
		panic(err) // dial above has no error
	}
	return c
}

type socket struct {
	k    *Kernel
	next func() (Reply, bool)
}

func (s *socket) Close() error { s.k.Closed++; return nil }

func (s *socket) Send(b []byte) error {
	ne := binary.NativeEndian
	q := netlink.Message{
		Header: netlink.Header{Length: ne.Uint32(b), Type: netlink.HeaderType(ne.Uint16(b[4:])), Flags: netlink.HeaderFlags(ne.Uint16(b[6:])), Sequence: ne.Uint32(b[8:])},
		Data:   b[16:],
	}
	s.next = s.k.Answer(s.k.Asked, q)
	s.k.Asked++
	return nil
}

// Receive says at once that the time is over when there are no more datagrams.
func (s *socket) Receive(time.Time) ([]byte, uint32, error) {
	r, ok := s.next()
	if !ok {
		return nil, 0, os.ErrDeadlineExceeded
	}
	return r.Data, r.Sender, r.Err
}

// Message writes a message. A length of 0 is the right one.
func Message(h netlink.Header, data []byte) []byte {
	ne := binary.NativeEndian
	if h.Length == 0 {
		h.Length = uint32(16 + len(data))
	}
	b := ne.AppendUint32(nil, h.Length)
	b = ne.AppendUint16(b, uint16(h.Type))
	b = ne.AppendUint16(b, uint16(h.Flags))
	b = ne.AppendUint32(b, h.Sequence)
	b = ne.AppendUint32(b, h.PID)
	b = append(b, data...)
	return append(b, make([]byte, (4-len(b)%4)%4)...)
}

// List gives replies one after the other.
func List(all ...Reply) func() (Reply, bool) {
	return func() (Reply, bool) {
		if len(all) == 0 {
			return Reply{}, false
		}
		r := all[0]
		all = all[1:]
		return r, true
	}
}

// Answers is the answer to a question: one message, or a dump if the question wants one.
func Answers(q netlink.Message, typ netlink.HeaderType, data ...[]byte) func() (Reply, bool) {
	h := netlink.Header{Type: typ, Sequence: q.Header.Sequence}
	if q.Header.Flags&netlink.Dump != netlink.Dump && len(data) == 1 {
		return List(Reply{Data: Message(h, data[0])})
	}
	h.Flags = netlink.Multi
	var all []Reply
	for _, d := range data {
		all = append(all, Reply{Data: Message(h, d)})
	}
	h.Type = netlink.Done
	return List(append(all, Reply{Data: Message(h, make([]byte, 4))})...)
}

// Errno is an answer that is an error number.
func Errno(q netlink.Message, errno int) Reply {
	b := binary.NativeEndian.AppendUint32(nil, uint32(int32(-errno)))
	return Reply{Data: Message(netlink.Header{Type: netlink.Error, Sequence: q.Header.Sequence}, append(b, make([]byte, 16)...))}
}
