package handshake

import (
	"encoding/binary"
	"fmt"

	"github.com/verbena-rdma/verbena/ib"
)

// KeyCMLen is the length of a key over a connection of the RDMA connection
// manager.
const KeyCMLen = 56

// AppendKeyCM appends k as perftest writes it over such a connection: numbers
// of 32 bits in network order, with the address at a multiple of 8; the index
// of the GID at the end is 0 here.
func AppendKeyCM(b []byte, k Key) []byte {
	be := binary.BigEndian
	b = be.AppendUint32(b, uint32(k.LID))
	b = be.AppendUint32(b, uint32(k.OutReads))
	b = be.AppendUint32(b, uint32(k.QPN))
	b = be.AppendUint32(b, uint32(k.PSN))
	b = be.AppendUint64(b, uint64(k.RKey)<<32)
	b = be.AppendUint64(b, k.Addr)
	b = append(b, k.GID[:]...)
	b = be.AppendUint32(b, k.SRQN)
	return be.AppendUint32(b, 0)
}

// ParseKeyCM reads a key of [KeyCMLen] bytes. The error matches [ErrFormat].
func ParseKeyCM(b []byte) (Key, error) {
	if len(b) != KeyCMLen {
		return Key{}, fmt.Errorf("%w: key of %d bytes, want %d", ErrFormat, len(b), KeyCMLen)
	}
	be := binary.BigEndian
	lid, reads, qpn, psn := be.Uint32(b), be.Uint32(b[4:]), be.Uint32(b[8:]), be.Uint32(b[12:])
	for _, f := range []struct {
		name    string
		v, most uint32
	}{{"LID", lid, 1<<16 - 1}, {"outstanding reads", reads, 1<<16 - 1}, {"QPN", qpn, uint32(ib.MaxQPN)}, {"PSN", psn, uint32(ib.PSNMask)}} {
		if f.v > f.most {
			return Key{}, fmt.Errorf("%w: %s 0x%x of a key, can be up to 0x%x", ErrFormat, f.name, f.v, f.most)
		}
	}
	return Key{
		LID: uint16(lid), OutReads: uint16(reads), QPN: ib.QPN(qpn), PSN: ib.PSN(psn), RKey: ib.RKey(be.Uint32(b[16:])),
		Addr: be.Uint64(b[24:]), GID: ib.GID(b[32:48]), SRQN: be.Uint32(b[48:]),
	}, nil
}
