package verbs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/verbena-rdma/verbena/ib"
)

// Peer is the other end of Connect.
type Peer struct {
	QPN    ib.QPN
	QKey   ib.QKey   // UD: what sends to it carry
	Path   Path      // as the local queue pair was set up
	Remote ib.Remote // first byte of the peer's region; zero if it has none
	Len    uint64    // bytes of the peer's region
	ah     *AH       // UD
}

// At returns the place of byte off of the peer's region.
func (p *Peer) At(off int) ib.Remote {
	return ib.Remote{Addr: p.Remote.Addr + uint64(off), RKey: p.Remote.RKey}
}

// Datagram returns where a UD send to the peer goes. Its address handle lives
// as long as the local queue pair.
func (p *Peer) Datagram() ib.Datagram {
	d := ib.Datagram{QPN: p.QPN, QKey: p.QKey}
	if p.ah != nil {
		d.AH = p.ah.Handle()
	}
	return d
}

// Connect joins a queue pair with the one at the other end of conn, where
// Connect is called too. They swap QPN, PSN, GID, MTU and the place of mr, which
// may be nil; the path MTU becomes the lower of the two ports'. When Connect
// returns without error at one end, both queue pairs are in RTS, or will not be
// found otherwise: each end has waited for the other.
//
// qp is in Reset (then its peer may do all that the regions allow) or in Init.
// The local GID is the one that SelectGID gives for the other end of conn, or
// the first usable one where conn is not of an IP network. conn stays open and
// no byte beyond the handshake is read from it; its deadlines are cleared. ctx
// bounds the whole. Timeouts, retries and the like are Path's defaults; the example
// of QP.Modify changes them afterwards.
//
// The error matches ErrHandshake if the other end speaks another version or
// something else, or has failed itself; what it said is in the text. After an
// error the queue pair is as it was, except that one which was in Init has lost
// its receives.
func Connect(ctx context.Context, conn net.Conn, qp *QP, mr *MR) (*Peer, error) {
	c := connection{qp: qp, mr: mr, was: qp.Query()}
	undo := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	peer, err := c.run(conn)
	if !undo() && err == nil {
		err = context.Cause(ctx) // the deadline may have hit the other end's last read
	}
	_ = conn.SetDeadline(time.Time{})
	if err != nil {
		c.rollBack()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("connect QP %v: %w", qp.Num(), err)
	}
	return peer, nil
}

// The handshake: each end sends a hello, then a verdict. All integers are
// big-endian.
//
//	hello    "VRBC" version:16 length:16, then length bytes: type:8 mtu:8 rd_atomic:8 gid_type:8
//	         qpn:32 psn:32 qkey:32 gid:128 addr:64 len:64 rkey:32
//	verdict  length:16, then length bytes of text; none means: in RTS
const (
	helloMagic   = "VRBC"
	helloVersion = 1
	helloHead    = 8
	helloBody    = 4 + 3*4 + 16 + 8 + 8 + 4
	maxVerdict   = 512
)

type hello struct {
	typ      ib.QPType
	mtu      ib.MTU
	rdAtomic uint8 // what the responder takes
	qpn      ib.QPN
	psn      ib.PSN
	qkey     ib.QKey
	gid      ib.GID
	gidType  ib.GIDType // 0: the other end does not say
	addr     uint64
	len      uint64
	rkey     ib.RKey
}

func (h *hello) encode() []byte {
	b := append(make([]byte, 0, helloHead+helloBody), helloMagic...)
	b = binary.BigEndian.AppendUint16(b, helloVersion)
	b = binary.BigEndian.AppendUint16(b, helloBody)
	b = append(b, byte(h.typ), byte(h.mtu), h.rdAtomic, byte(h.gidType))
	b = binary.BigEndian.AppendUint32(b, uint32(h.qpn))
	b = binary.BigEndian.AppendUint32(b, uint32(h.psn))
	b = binary.BigEndian.AppendUint32(b, uint32(h.qkey))
	b = append(b, h.gid[:]...)
	b = binary.BigEndian.AppendUint64(b, h.addr)
	b = binary.BigEndian.AppendUint64(b, h.len)
	return binary.BigEndian.AppendUint32(b, uint32(h.rkey))
}

func readHello(r io.Reader) (hello, error) {
	var head [helloHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return hello{}, readError("hello", err)
	}
	if string(head[:4]) != helloMagic {
		return hello{}, errorf(ErrHandshake, "the other end does not speak Connect's handshake: it begins with %q", head[:])
	}
	if v := binary.BigEndian.Uint16(head[4:]); v != helloVersion {
		return hello{}, errorf(ErrHandshake, "the other end speaks version %d of the handshake, this one version %d", v, helloVersion)
	}
	if n := binary.BigEndian.Uint16(head[6:]); n != helloBody {
		return hello{}, errorf(ErrHandshake, "the other end's hello is %d bytes long, version %d has %d", n, helloVersion, helloBody)
	}
	var b [helloBody]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return hello{}, readError("hello", err)
	}
	be := binary.BigEndian
	h := hello{
		typ: ib.QPType(b[0]), mtu: ib.MTU(b[1]), rdAtomic: b[2], gidType: ib.GIDType(b[3]),
		qpn: ib.QPN(be.Uint32(b[4:])), psn: ib.PSN(be.Uint32(b[8:])), qkey: ib.QKey(be.Uint32(b[12:])),
		gid: ib.GID(b[16:32]), addr: be.Uint64(b[32:]), len: be.Uint64(b[40:]), rkey: ib.RKey(be.Uint32(b[48:])),
	}
	if h.mtu.Bytes() == 0 || h.qpn > ib.MaxQPN || h.psn > ib.PSNMask {
		return hello{}, errorf(ErrHandshake, "the other end's hello makes no sense: MTU code %d, QPN 0x%x, PSN 0x%x", uint8(h.mtu), uint32(h.qpn), uint32(h.psn))
	}
	return h, nil
}

func readError(what string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errorf(ErrHandshake, "the other end closed the connection before its %s was complete", what)
	}
	return fmt.Errorf("read the other end's %s: %w", what, err)
}

type connection struct {
	qp    *QP
	mr    *MR
	was   ib.QPAttr
	moved bool // out of the state that it was in
	ah    *AH
}

func (c *connection) run(conn net.Conn) (*Peer, error) {
	mine, row, err := c.hello(conn)
	if err != nil {
		return nil, err
	}
	theirs, err := swap(conn, mine.encode(), readHello)
	if err != nil {
		return nil, err
	}
	peer, err := c.setUp(mine, theirs, row)
	verdict := ""
	if err != nil {
		verdict = err.Error()
	}
	said, swapErr := swap(conn, encodeVerdict(verdict), readVerdict)
	switch {
	case err != nil:
		return nil, err
	case said != "": // even if it has hung up since
		return nil, errorf(ErrHandshake, "the other end failed: %s", said)
	case swapErr != nil:
		return nil, swapErr
	}
	if !c.qp.keep(c.ah) {
		return nil, errorf(ErrClosed, "it was closed meanwhile")
	}
	return peer, nil
}

// hello says what this end is.
func (c *connection) hello(conn net.Conn) (hello, int, error) {
	d := c.qp.pd.dev
	if c.qp.dead.Load() || d.closed.Load() {
		return hello{}, 0, errorf(ErrClosed, "it is closed")
	}
	if s := c.was.State; s != ib.Reset && s != ib.Init {
		return hello{}, 0, errorf(ErrState, "its state is %v, must be RESET or INIT", s)
	}
	if c.mr != nil && (c.mr.dead.Load() || c.mr.PD() != c.qp.pd) {
		return hello{}, 0, errorf(ErrInvalid, "the memory region is closed or of another PD")
	}
	row, err := c.row(conn)
	if err != nil {
		return hello{}, 0, err
	}
	h := hello{
		typ: c.qp.Type(), mtu: d.adapter.MTU(), rdAtomic: Path{}.filled(d).MaxDestRdAtomic,
		qpn: c.qp.Num(), psn: ib.PSN(random32()) & ib.PSNMask, gid: d.gids[row].GID, gidType: d.gids[row].Type,
	}
	if h.typ == ib.UD {
		h.qkey = ib.QKey(random32() &^ 0x80000000)
		if c.was.State == ib.Init {
			h.qkey = c.was.QKey
		}
	}
	if c.mr != nil {
		h.addr, h.len, h.rkey = c.mr.Addr(), uint64(c.mr.Len()), c.mr.RKey()
	}
	return h, row, nil
}

// row picks the local GID for the other end of conn.
func (c *connection) row(conn net.Conn) (int, error) {
	d := c.qp.pd.dev
	if a := conn.RemoteAddr(); a != nil {
		if ap, err := netip.ParseAddrPort(a.String()); err == nil {
			if row, err := d.SelectGID(ap.Addr()); err == nil {
				return row, nil
			}
		}
	}
	// The handshake may go over another network than the data.
	return defaultRow(d.gids)
}

// setUp brings the queue pair to RTS.
func (c *connection) setUp(mine, theirs hello, row int) (*Peer, error) {
	if mine.typ != theirs.typ {
		return nil, errorf(ErrHandshake, "the queue pair is %v, the other end's %v", mine.typ, theirs.typ)
	}
	if mine.gid.Is4() != theirs.gid.Is4() {
		return nil, errorf(ErrNoGID, "local GID %v (row %d) and the other end's %v are of different address families", mine.gid.Addr(), row, theirs.gid.Addr())
	}
	p := Path{
		DestQPN: theirs.qpn, PSN: theirs.psn, LocalPSN: mine.psn,
		GID: theirs.gid, GIDType: theirs.gidType, GIDIndex: row, MTU: min(mine.mtu, theirs.mtu), MaxRdAtomic: max(1, min(mine.rdAtomic, theirs.rdAtomic)),
		LateAck: true,
	}.filled(c.qp.pd.dev)
	peer := &Peer{QPN: theirs.qpn, QKey: theirs.qkey, Path: p, Remote: ib.Remote{Addr: theirs.addr, RKey: theirs.rkey}, Len: theirs.len}
	if mine.typ == ib.UD {
		ah, err := c.qp.pd.CreateAH(p.AV())
		if err != nil {
			return nil, err
		}
		c.ah, peer.ah = ah, ah
	}
	c.moved = true
	if c.was.State == ib.Reset {
		var err error
		if mine.typ == ib.UD {
			err = c.qp.ToInitUD(mine.qkey)
		} else {
			err = c.qp.ToInit(ib.RemoteAll | ib.RemoteFlush)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := c.qp.ToRTR(p); err != nil {
		return nil, err
	}
	if err := c.qp.ToRTS(p); err != nil {
		return nil, err
	}
	return peer, nil
}

// rollBack puts the queue pair back into the state that it was in.
func (c *connection) rollBack() {
	if c.ah != nil {
		_ = c.ah.Close()
	}
	if !c.moved {
		return
	}
	_ = c.qp.ToReset()
	if c.was.State == ib.Init {
		attr := c.was
		attr.Mask = ib.AttrState | ib.AttrPKeyIndex | ib.AttrPort
		if c.qp.Type() == ib.UD {
			attr.Mask |= ib.AttrQKey
		} else {
			attr.Mask |= ib.AttrAccess
		}
		_ = c.qp.Modify(attr)
	}
}

// swap writes out and reads at the same time, so that neither end waits for the
// other to read first.
func swap[T any](conn net.Conn, out []byte, read func(io.Reader) (T, error)) (T, error) {
	var wg sync.WaitGroup
	var writeErr error
	wg.Go(func() { _, writeErr = conn.Write(out) })
	in, err := read(conn)
	if err != nil {
		// Whoever does not answer will not read either.
		_ = conn.SetWriteDeadline(time.Unix(1, 0))
	}
	wg.Wait()
	if err == nil && writeErr != nil {
		err = fmt.Errorf("write to the other end: %w", writeErr)
	}
	return in, err
}

func encodeVerdict(text string) []byte {
	if len(text) > maxVerdict {
		text = text[:maxVerdict]
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(text))), text...)
}

func readVerdict(r io.Reader) (string, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", readError("verdict", err)
	}
	n := binary.BigEndian.Uint16(head[:])
	if n > maxVerdict {
		return "", errorf(ErrHandshake, "the other end's verdict is %d bytes long, can be %d", n, maxVerdict)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return "", readError("verdict", err)
	}
	return string(text), nil
}
