package nlask_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mdlayher/netlink"

	"github.com/verbena-rdma/verbena/diag/source/nlask"
	"github.com/verbena-rdma/verbena/diag/source/nlask/nlfake"
)

const kind = 100

var dump = netlink.Message{Header: netlink.Header{Type: kind, Flags: netlink.Request | netlink.Dump}, Data: []byte{1, 2, 3, 4}}

// part is a message of a dump, changed by hand.
func part(q netlink.Message, change func(*netlink.Header)) nlfake.Reply {
	h := netlink.Header{Type: kind, Flags: netlink.Multi, Sequence: q.Header.Sequence}
	change(&h)
	return nlfake.Reply{Data: nlfake.Message(h, []byte{5, 6, 7, 8})}
}

func good(*netlink.Header) {}

func end(h *netlink.Header) { h.Type = netlink.Done; h.Flags |= netlink.DumpInterrupted }

// whole is a dump of two messages.
func whole(q netlink.Message) func() (nlfake.Reply, bool) {
	return nlfake.Answers(q, kind, []byte{1}, []byte{2})
}

func endless(r nlfake.Reply) func() (nlfake.Reply, bool) {
	return func() (nlfake.Reply, bool) { return r, true }
}

// TestAnswers has every way in which an answer is not whole: some are asked for again,
// others are refused with what is wrong.
func TestAnswers(t *testing.T) {
	type next = func() (nlfake.Reply, bool)
	always := func(f func(q netlink.Message) next) func(int, netlink.Message) next {
		return func(_ int, q netlink.Message) next { return f(q) }
	}
	once := func(f func(q netlink.Message) next) func(int, netlink.Message) next {
		return func(asked int, q netlink.Message) next {
			if asked == 0 {
				return f(q)
			}
			return whole(q)
		}
	}
	list := nlfake.List
	failing := func(err error) func(q netlink.Message) next {
		return func(q netlink.Message) next { return list(part(q, good), nlfake.Reply{Err: err}) }
	}
	for name, tc := range map[string]struct {
		answer func(int, netlink.Message) next
		asked  int
		want   any // error or a part of its text; nil for two messages
	}{
		"whole": {always(whole), 1, nil},
		"changed once": {once(func(q netlink.Message) next {
			return list(part(q, func(h *netlink.Header) { h.Flags |= netlink.DumpInterrupted }), part(q, func(h *netlink.Header) { h.Type = netlink.Done }))
		}), 2, nil},
		"changed at the end": {once(func(q netlink.Message) next { return list(part(q, good), part(q, end)) }), 2, nil},
		"changes always":     {always(func(q netlink.Message) next { return list(part(q, end)) }), 5, nlask.ErrChanging},
		"interrupted":        {once(failing(syscall.EINTR)), 2, nil},
		"interrupted always": {always(failing(syscall.EINTR)), 5, syscall.EINTR},
		"overrun":            {once(failing(syscall.ENOBUFS)), 2, nil},
		"overrun always":     {always(failing(syscall.ENOBUFS)), 5, syscall.ENOBUFS},
		"overrun message": {once(func(q netlink.Message) next {
			return list(part(q, func(h *netlink.Header) { h.Type = netlink.Overrun }))
		}), 2, nil},
		"refused":             {always(func(q netlink.Message) next { return list(nlfake.Errno(q, int(syscall.EPERM))) }), 1, syscall.EPERM},
		"an error on the way": {always(func(q netlink.Message) next { return list(part(q, good), nlfake.Errno(q, int(syscall.EOPNOTSUPP))) }), 1, syscall.EOPNOTSUPP},
		"an error at the end": {always(func(q netlink.Message) next {
			return list(part(q, good), nlfake.Reply{Data: nlfake.Message(netlink.Header{Type: netlink.Done, Flags: netlink.Multi, Sequence: q.Header.Sequence}, binary.NativeEndian.AppendUint32(nil, ^uint32(syscall.EMSGSIZE)+1))})
		}), 1, syscall.EMSGSIZE},
		"an error without a number": {always(func(q netlink.Message) next {
			return list(nlfake.Reply{Data: nlfake.Message(netlink.Header{Type: netlink.Error, Sequence: q.Header.Sequence}, []byte{1})})
		}), 1, "an error of 1 bytes"},
		"an error of the socket": {always(failing(syscall.EPERM)), 1, syscall.EPERM},
		"no end":                 {always(func(q netlink.Message) next { return endless(part(q, good)) }), 1, "more than the limit of 1000 messages"},
		"no end of other answers": {always(func(q netlink.Message) next {
			return endless(part(q, func(h *netlink.Header) { h.Sequence++ }))
		}), 1, "more than the limit of 1000 messages"},
		"no end of other senders": {always(func(q netlink.Message) next {
			r := part(q, good)
			r.Sender = 77
			return endless(r)
		}), 1, "more than the limit of 1000 messages"},
		"no end of nothing": {always(func(netlink.Message) next { return endless(nlfake.Reply{}) }), 1, "more than the limit of 1000 messages"},
		"no end of padding": {always(func(q netlink.Message) next {
			return endless(part(q, func(h *netlink.Header) { h.Type = netlink.Noop }))
		}), 1, "more than the limit of 1000 messages"},
		"too long": {always(func(q netlink.Message) next {
			return endless(nlfake.Reply{Data: nlfake.Message(netlink.Header{Type: kind, Flags: netlink.Multi, Sequence: q.Header.Sequence}, make([]byte, 30_000))})
		}), 1, "longer than the limit of 1048576 bytes"},
		"never answered":        {always(func(netlink.Message) next { return list() }), 1, "no whole answer within 1m0s: 0 messages came"},
		"stops in the middle":   {always(func(q netlink.Message) next { return list(part(q, good), part(q, good)) }), 1, "no whole answer within 1m0s: 2 messages came"},
		"a length beyond":       {always(func(q netlink.Message) next { return list(part(q, func(h *netlink.Header) { h.Length = 400 })) }), 1, "says that it has 400 bytes, of 20"},
		"a length of the moon":  {always(func(q netlink.Message) next { return list(part(q, func(h *netlink.Header) { h.Length = 1<<32 - 1 })) }), 1, "says that it has 4294967295 bytes"},
		"a length below a head": {always(func(q netlink.Message) next { return list(part(q, func(h *netlink.Header) { h.Length = 15 })) }), 1, "says that it has 15 bytes"},
		"a cut head":            {always(func(q netlink.Message) next { return list(nlfake.Reply{Data: part(q, good).Data[:11]}) }), 1, "a datagram of 11 bytes ends in 11 bytes"},
		"a cut tail": {always(func(q netlink.Message) next {
			return list(nlfake.Reply{Data: append(part(q, good).Data, 1, 2, 3)})
		}), 1, "ends in 3 bytes"},
		"other answers before": {always(func(q netlink.Message) next {
			other := part(q, func(h *netlink.Header) { h.Sequence += 9; h.Flags = 0 })
			forged := nlfake.Errno(q, 1)
			forged.Sender = 77
			w := whole(q)
			all := []nlfake.Reply{other, forged}
			return func() (nlfake.Reply, bool) {
				if len(all) > 0 {
					r := all[0]
					all = all[1:]
					return r, true
				}
				return w()
			}
		}), 1, nil},
		"two in one datagram": {always(func(q netlink.Message) next {
			b := append(part(q, good).Data, part(q, good).Data...)
			return list(nlfake.Reply{Data: append(b, part(q, func(h *netlink.Header) { h.Type = netlink.Done }).Data...)})
		}), 1, nil},
	} {
		k := &nlfake.Kernel{Answer: tc.answer}
		c := k.Dial(nlask.Limits{Messages: 1000, Bytes: 1 << 20, Time: time.Minute})
		msgs, err := c.Execute(dump)
		ok := false
		switch want := tc.want.(type) {
		case nil:
			ok = err == nil && len(msgs) == 2
		case error:
			ok = errors.Is(err, want)
		case string:
			ok = err != nil && strings.Contains(err.Error(), want)
		}
		if !ok || k.Asked != tc.asked || err != nil && msgs != nil {
			t.Errorf("%s: asked %d times, %d messages, %v", name, k.Asked, len(msgs), err)
		}
		// Whatever it was, the next question is answered, and no socket is left open.
		k.Answer = always(whole)
		if msgs, err := c.Execute(dump); err != nil || len(msgs) != 2 {
			t.Errorf("%s: the question after it: %d messages, %v", name, len(msgs), err)
		}
		c.Close()
		if k.Opened != k.Closed {
			t.Errorf("%s: %d sockets, %d closed", name, k.Opened, k.Closed)
		}
	}
}

// FuzzDatagram feeds datagrams: no panic, and no more in memory than came.
func FuzzDatagram(f *testing.F) {
	f.Add([]byte{}, uint32(1))
	f.Add(nlfake.Message(netlink.Header{Type: kind, Flags: netlink.Multi, Sequence: 1}, []byte{1, 2, 3}), uint32(0))
	f.Add(nlfake.Message(netlink.Header{Type: netlink.Error, Sequence: 1}, []byte{255, 255, 255, 255}), uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, sender uint32) {
		k := &nlfake.Kernel{Answer: func(int, netlink.Message) func() (nlfake.Reply, bool) {
			return nlfake.List(nlfake.Reply{Data: b, Sender: sender}, nlfake.Reply{Data: b, Sender: sender})
		}}
		c := k.Dial(nlask.Limits{Messages: 50})
		msgs, err := c.Execute(dump)
		n := 0
		for _, m := range msgs {
			n += 16 + len(m.Data)
		}
		if n > 2*len(b) || err == nil && len(msgs) > 50 {
			t.Errorf("%d bytes in %d messages of %d bytes", n, len(msgs), len(b))
		}
	})
}
