package perf

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
)

// cmWire is the handshake's connection in tests with -R: a queue pair of its
// own, connected by the connection manager, one SEND for each step. It is a
// net.Conn for one reader and one writer.
type cmWire struct {
	conn           *rdmacm.Conn
	qp             *verbs.QP
	sendCQ, recvCQ *verbs.CQ
	mr             *verbs.MR
	ctx            context.Context // ends with Close
	cancel         context.CancelFunc
	once           sync.Once

	rest []byte // of a receive, not yet read
	slot uint64 // whose receive that is
	held bool   // rest's receive is to be posted again
}

// The memory of a cmWire: what is received, and one slot for what is sent.
const (
	cmSlots     = 64
	cmSlotBytes = 1024
)

// cmTimeout is how long a step may take to be acknowledged.
const cmTimeout = 30 * time.Second

// newCMWire makes a queue pair with its receives posted, not yet connected.
func newCMWire(dev *verbs.Device) (w *cmWire, err error) {
	w = &cmWire{}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	pd := dev.AllocPD() // all of it ends with the device
	if w.sendCQ, err = dev.CreateCQ(verbs.CQConfig{Depth: 16}); err != nil {
		return nil, err
	}
	if w.recvCQ, err = dev.CreateCQ(verbs.CQConfig{Depth: 2 * cmSlots}); err != nil {
		return nil, err
	}
	if w.mr, err = pd.RegisterMR(make([]byte, (cmSlots+1)*cmSlotBytes), ib.LocalWrite); err != nil {
		return nil, err
	}
	w.qp, err = pd.CreateQP(verbs.QPConfig{
		Type: ib.RC, SendCQ: w.sendCQ, RecvCQ: w.recvCQ, Cap: ib.QPCap{MaxSendWR: 4, MaxRecvWR: cmSlots, MaxSendSGE: 1, MaxRecvSGE: 1},
	})
	if err != nil {
		return nil, err
	}
	if err := w.qp.ToInit(0); err != nil {
		return nil, err
	}
	for i := range cmSlots {
		if err := w.post(uint64(i)); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *cmWire) post(slot uint64) error {
	return w.qp.PostRecv(ib.RecvWR{ID: slot, SGL: w.mr.SGE(int(slot)*cmSlotBytes, cmSlotBytes)})
}

// cmOptions are those of a handshake's connection: no READs.
var cmOptions = rdmacm.Options{ResponderResources: -1, InitiatorDepth: -1}

// Read implements net.Conn: the bytes of the messages, in order.
func (w *cmWire) Read(b []byte) (int, error) {
	for len(w.rest) == 0 {
		if w.held {
			w.held = false
			if err := w.post(w.slot); err != nil {
				return 0, err
			}
		}
		var wcs [1]ib.WC
		if _, err := w.recvCQ.Wait(w.ctx, wcs[:]); err != nil {
			return 0, net.ErrClosed
		}
		if wcs[0].Status != ib.Success {
			return 0, io.EOF // flushed: the connection has ended
		}
		w.slot, w.held = wcs[0].ID, true
		w.rest = w.mr.Bytes()[w.slot*cmSlotBytes:][:wcs[0].Bytes]
	}
	n := copy(b, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// Write implements net.Conn: one message, or several where b is long.
func (w *cmWire) Write(b []byte) (n int, err error) {
	ctx, cancel := context.WithTimeout(w.ctx, cmTimeout)
	defer cancel()
	const at = cmSlots * cmSlotBytes
	for len(b) > 0 {
		k := copy(w.mr.Bytes()[at:], b)
		if err := w.qp.PostSend(ib.SendWR{Op: ib.Send, Flags: ib.Signaled, SGL: w.mr.SGE(at, k)}); err != nil {
			return n, err
		}
		var wcs [1]ib.WC
		if _, err := w.sendCQ.Wait(ctx, wcs[:]); err != nil {
			if w.ctx.Err() != nil {
				return n, net.ErrClosed
			}
			return n, os.ErrDeadlineExceeded
		}
		if wcs[0].Status != ib.Success {
			return n, fmt.Errorf("message to the peer: %v", wcs[0].Status)
		}
		n, b = n+k, b[k:]
	}
	return n, nil
}

// Close implements net.Conn.
func (w *cmWire) Close() error {
	w.once.Do(func() {
		_ = w.conn.Close()
		w.cancel()
	})
	return nil
}

// LocalAddr implements net.Conn.
func (w *cmWire) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(w.conn.LocalAddr()) }

// RemoteAddr implements net.Conn.
func (w *cmWire) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(w.conn.RemoteAddr()) }

// SetDeadline implements net.Conn: steps have their own time.
func (w *cmWire) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (w *cmWire) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (w *cmWire) SetWriteDeadline(time.Time) error { return nil }
