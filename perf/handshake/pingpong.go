package handshake

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/verbena-rdma/verbena/ib"
)

// PingpongLen is the length of the line of libibverbs' pingpong examples, its
// closing zero counted.
const PingpongLen = 52

const pingpongDone = "done\x00"

// Address is what one end of a pingpong tells about its queue pair.
type Address struct {
	LID uint16 // 0 on RoCE
	QPN ib.QPN
	PSN ib.PSN
	GID ib.GID // zero when the program was given no GID index
}

// AppendAddress appends the [PingpongLen] bytes of a.
func AppendAddress(b []byte, a Address) []byte {
	b = fmt.Appendf(b, "%04x:%06x:%06x:%x", a.LID, uint32(a.QPN), uint32(a.PSN), a.GID[:])
	return append(b, 0)
}

// ParseAddress reads the line. The error matches [ErrFormat].
func ParseAddress(b []byte) (Address, error) {
	var a Address
	if len(b) != PingpongLen {
		return a, fmt.Errorf("%w: address of %d bytes, want %d", ErrFormat, len(b), PingpongLen)
	}
	text, _, _ := bytes.Cut(b, []byte{0})
	f := strings.Split(string(text), ":")
	if len(f) != 4 {
		return a, fmt.Errorf("%w: address line %s has %d fields, want 4", ErrFormat, quote(text), len(f))
	}
	p := fieldParser{line: text}
	a.LID = uint16(p.hex(f[0], 16, "LID"))
	a.QPN = ib.QPN(p.hex(f[1], 24, "QPN"))
	a.PSN = ib.PSN(p.hex(f[2], 24, "PSN"))
	if p.err != nil {
		return Address{}, p.err
	}
	g, err := hex.DecodeString(f[3])
	if err != nil || len(g) != len(a.GID) {
		return Address{}, fmt.Errorf("%w: GID %s in address line %s, want 32 hexadecimal digits", ErrFormat, quote([]byte(f[3])), quote(text))
	}
	a.GID = ib.GID(g)
	return a, nil
}

// PingpongClient is the conversation of the side that connects: it sends
// its address, reads the peer's, and says that it has it. The peer is ready to
// receive when its address arrives.
func PingpongClient(rw io.ReadWriter, mine Address) (Address, error) {
	if _, err := rw.Write(AppendAddress(nil, mine)); err != nil {
		return Address{}, &Error{Step: "address", Err: cause(err)}
	}
	a, err := readAddress(rw, mine)
	if err != nil {
		return a, err
	}
	if _, err := io.WriteString(rw, pingpongDone); err != nil {
		return a, &Error{Step: "done", Err: cause(err)}
	}
	return a, nil
}

// PingpongServer is the conversation of the side that listens. connect is
// called with the peer's address between reading it and answering, and must
// make the queue pair ready to receive and to send.
func PingpongServer(rw io.ReadWriter, mine Address, connect func(Address) error) (Address, error) {
	a, err := readAddress(rw, mine)
	if err != nil {
		return a, err
	}
	if err := connect(a); err != nil {
		return a, err
	}
	if _, err := rw.Write(AppendAddress(nil, mine)); err != nil {
		return a, &Error{Step: "address", Err: cause(err)}
	}
	done := make([]byte, len(pingpongDone))
	if _, err := io.ReadFull(rw, done); err != nil {
		return a, &Error{Step: "done", Err: cause(err), Hint: "the client could not use our address"}
	}
	return a, nil
}

func readAddress(r io.Reader, mine Address) (Address, error) {
	b := make([]byte, PingpongLen)
	if _, err := io.ReadFull(r, b); err != nil {
		return Address{}, &Error{Step: "address", Err: cause(err), Hint: "both ends must run the same pingpong"}
	}
	a, err := ParseAddress(b)
	switch {
	case err != nil:
		return a, &Error{Step: "address", Err: err, Hint: "is the program on the other side a pingpong?"}
	case a.GID.IsZero():
		return a, &Error{Step: "address", Err: ErrNoGID, Hint: "give it a GID index with -g"}
	case a.GID.Is4() != mine.GID.Is4():
		return a, &Error{
			Step: "address", Err: ErrGIDFamily,
			Hint: fmt.Sprintf("%v here and %v there: choose rows of one family with -g on both ends", mine.GID.Addr(), a.GID.Addr()),
		}
	}
	return a, nil
}
