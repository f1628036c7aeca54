package nlask

import (
	"encoding/binary"
	"fmt"
	"syscall"

	"github.com/mdlayher/netlink"
)

// headLen is the length of a netlink header in bytes.
const headLen = 16

// marshal writes a question.
func marshal(m netlink.Message, seq uint32) []byte {
	ne := binary.NativeEndian
	b := ne.AppendUint32(nil, uint32(headLen+len(m.Data)))
	b = ne.AppendUint16(b, uint16(m.Header.Type))
	b = ne.AppendUint16(b, uint16(m.Header.Flags))
	b = ne.AppendUint32(b, seq)
	b = ne.AppendUint32(b, 0)
	return append(b, m.Data...)
}

// answer collects the messages of an answer.
type answer struct {
	limits  Limits
	seq     uint32
	msgs    []netlink.Message
	seen    int // messages, also those that are no answer
	bytes   int
	changed bool // NLM_F_DUMP_INTR
	done    bool // the answer is at its end, be it an error
}

// add takes a datagram, which it copies.
func (a *answer) add(b []byte, sender uint32) error {
	if a.bytes += len(b); a.bytes > a.limits.Bytes {
		return fmt.Errorf("the answer is longer than the limit of %d bytes", a.limits.Bytes)
	}
	if len(b) == 0 || sender != 0 { // not from the kernel
		a.seen++
		return a.count()
	}
	multi, whole := false, len(b)
	data := make([]byte, len(b))
	copy(data, b)
	for b = data; len(b) > 0 && !a.done; {
		if len(b) < headLen {
			return fmt.Errorf("a datagram of %d bytes ends in %d bytes that are no message", whole, len(b))
		}
		n := int(binary.NativeEndian.Uint32(b))
		if n < headLen || n > len(b) {
			return fmt.Errorf("a message says that it has %d bytes, of %d", uint32(n), len(b))
		}
		a.seen++
		if err := a.count(); err != nil {
			return err
		}
		m := message(b[:n])
		b = b[min((n+3)&^3, len(b)):]
		if m.Header.Sequence != a.seq {
			multi = true // more is to come
			continue
		}
		more, err := a.one(m)
		if err != nil {
			return err
		}
		multi = more
	}
	a.done = a.done || !multi
	return nil
}

func (a *answer) count() error {
	if a.seen > a.limits.Messages {
		return fmt.Errorf("the answer has more than the limit of %d messages", a.limits.Messages)
	}
	return nil
}

func message(b []byte) netlink.Message {
	ne := binary.NativeEndian
	return netlink.Message{
		Header: netlink.Header{
			Length: ne.Uint32(b), Type: netlink.HeaderType(ne.Uint16(b[4:])), Flags: netlink.HeaderFlags(ne.Uint16(b[6:])),
			Sequence: ne.Uint32(b[8:]), PID: ne.Uint32(b[12:]),
		},
		Data: b[headLen:],
	}
}

// one takes a message of this answer; more says that others follow.
func (a *answer) one(m netlink.Message) (more bool, err error) {
	if m.Header.Flags&netlink.DumpInterrupted != 0 {
		a.changed = true
	}
	switch m.Header.Type {
	case netlink.Noop:
		return true, nil
	case netlink.Error:
		a.done = true
		return false, errno(m.Data, true)
	case netlink.Done:
		a.done = true
		return false, errno(m.Data, false)
	case netlink.Overrun:
		return false, syscall.ENOBUFS
	}
	a.msgs = append(a.msgs, m)
	return m.Header.Flags&netlink.Multi != 0, nil
}

// errno is the error number at the beginning of an error and, if the dump failed on the
// way, of the end of a dump. None is no error.
func errno(b []byte, must bool) error {
	if len(b) < 4 {
		if must {
			return fmt.Errorf("an error of %d bytes, without its number", len(b))
		}
		return nil
	}
	switch n := int32(binary.NativeEndian.Uint32(b)); {
	case n < 0 && n >= -4095: // the kernel's MAX_ERRNO
		return syscall.Errno(-n)
	case n != 0 && must:
		return fmt.Errorf("an error with the number %d", n)
	}
	return nil
}
