package nldev

import (
	"encoding/binary"
	"errors"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source/nlask"
	"github.com/verbena-rdma/verbena/diag/source/nlask/nlfake"
)

// attr is an attribute: 4 bytes of head, data, and padding to 4.
func attr(kind uint16, data []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(data)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), data...)
	return append(b, make([]byte, (4-len(b)%4)%4)...)
}

func u32(kind uint16, v uint32) []byte {
	return attr(kind, binary.NativeEndian.AppendUint32(nil, v))
}

func join(all ...[]byte) (b []byte) {
	for _, a := range all {
		b = append(b, a...)
	}
	return b
}

// qpAnswer is a queue pair as uapi rdma_netlink.h lays it out.
func qpAnswer() []byte {
	return join(u32(attrDevIndex, 3), attr(attrDevName, []byte("rxe0\x00")), attr(attrQP, attr(attrQPEntry, join(
		u32(attrPortIndex, 1), u32(attrLQPN, 17), u32(attrRQPN, 18), attr(attrType, []byte{2}), attr(attrState, []byte{3}), u32(attrPID, 99), u32(200, 5)))))
}

func answering(data ...[]byte) *Client {
	k := &nlfake.Kernel{Answer: func(_ int, q netlink.Message) func() (nlfake.Reply, bool) {
		return nlfake.Answers(q, q.Header.Type, data...)
	}}
	return New(k.Dial(nlask.Limits{}), func(int) string { return "prog" })
}

func TestQueuePairAnswer(t *testing.T) {
	want := []snapshot.QP{{Port: 1, LQPN: 17, RQPN: snapshot.Known(uint32(18)), Type: "RC", State: "RTS", PID: snapshot.Known(99), Comm: "prog"}}
	got, err := answering(qpAnswer()).QPs(3)
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b snapshot.Value[uint32]) bool { return a == b }), cmp.Comparer(func(a, b snapshot.Value[int]) bool { return a == b }), cmp.Comparer(func(a, b snapshot.Value[string]) bool { return a == b })); diff != "" || err != nil {
		t.Errorf("%v -want +got\n%s", err, diff)
	}
}

// A number of the wrong width, an attribute that runs out of its message, one of a length
// below its own head: an error that names the command, never a wrong value.
func TestWrongAnswers(t *testing.T) {
	long := attr(attrQP, nil)
	binary.NativeEndian.PutUint16(long, 400)
	short := attr(attrQP, nil)
	binary.NativeEndian.PutUint16(short, 2)
	for name, b := range map[string][]byte{
		"a number of 2 bytes": attr(attrQP, attr(attrQPEntry, attr(attrLQPN, []byte{1, 2}))),
		"too long":            long,
		"too short":           short,
		"wrong nesting":       attr(attrQP, attr(attrQPEntry, []byte{40, 0, 1, 0})),
		"odd length":          append(qpAnswer(), 1),
	} {
		if _, err := answering(b).QPs(3); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	k := &nlfake.Kernel{Answer: func(_ int, q netlink.Message) func() (nlfake.Reply, bool) {
		return nlfake.List(nlfake.Errno(q, int(syscall.EPERM)))
	}}
	if _, err := New(k.Dial(nlask.Limits{}), nil).QPs(3); !errors.Is(err, syscall.EPERM) {
		t.Errorf("refused: %v", err)
	}
}

// TestStatModes reads the modes that iproute2 prints as "qp auto type on" and as an
// optional counter that is on.
func TestStatModes(t *testing.T) {
	k := &nlfake.Kernel{Answer: func(_ int, q netlink.Message) func() (nlfake.Reply, bool) {
		if q.Header.Type&0x3ff == cmdStatus {
			return nlfake.Answers(q, q.Header.Type, attr(attrHWCounters, join(
				attr(attrHWCounter, attr(attrHWCounterName, []byte("sent_pkts\x00"))),
				attr(attrHWCounter, join(attr(attrHWCounterName, []byte("cc_rx_ce_pkts\x00")), attr(attrHWCounterOn, []byte{1}))),
				attr(attrHWCounter, join(attr(attrHWCounterName, []byte("cc_tx_cnp_pkts\x00")), attr(attrHWCounterOn, []byte{0}))))))
		}
		return nlfake.Answers(q, q.Header.Type, join(u32(attrStatMode, 1), u32(attrStatMask, 1)))
	}}
	c := New(k.Dial(nlask.Limits{}), nil)
	got, err := c.StatMode(0, 1)
	if err != nil || got.QP.Or("") != "qp auto type on" || !cmp.Equal(got.Optional, []snapshot.OptionalCounter{{Name: "cc_rx_ce_pkts", On: true}, {Name: "cc_tx_cnp_pkts"}}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// FuzzAnswers feeds any bytes to all readers of answers: no panic, and no more rows than
// the bytes can hold.
func FuzzAnswers(f *testing.F) {
	f.Add(qpAnswer())
	f.Add(qpAnswer()[:31])
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &Client{}
		n := 0
		all := func(read func(*netlink.AttributeDecoder) int) {
			_ = decode(b, func(d *netlink.AttributeDecoder) error {
				n = max(n, read(d))
				return nil
			})
		}
		all(func(d *netlink.AttributeDecoder) int { return len(entries(d, nil, attrQP, attrQPEntry, c.qp)) })
		all(func(d *netlink.AttributeDecoder) int { return len(entries(d, nil, attrCQ, attrCQEntry, c.cq)) })
		all(func(d *netlink.AttributeDecoder) int { return len(entries(d, nil, attrMR, attrMREntry, c.mr)) })
		all(func(d *netlink.AttributeDecoder) int { return len(entries(d, nil, attrCMID, attrCMIDEntry, c.cmid)) })
		all(func(d *netlink.AttributeDecoder) int { return len(entries(d, nil, attrSRQ, attrSRQEntry, c.srq)) })
		all(func(d *netlink.AttributeDecoder) int { return len(counters(d)) })
		all(func(d *netlink.AttributeDecoder) int { return len(entries(d, nil, attrBound, attrBoundEntry, c.bound)) })
		all(func(d *netlink.AttributeDecoder) int { return len(optional(d)) })
		all(func(d *netlink.AttributeDecoder) int { statMode(d); return 0 })
		all(func(d *netlink.AttributeDecoder) int { device(d); return 0 })
		all(func(d *netlink.AttributeDecoder) int { port(d); return 0 })
		if n > len(b)/4 {
			t.Errorf("%d rows of %d bytes", n, len(b))
		}
	})
}
