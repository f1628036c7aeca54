package wire

import (
	"encoding/binary"

	"github.com/verbena-rdma/verbena/ib"
)

// BTHLen is the length of a base transport header.
const BTHLen = 12

// CNPReservedLen is the length of what follows the BTH of a CNP
// (IBA vol.1 annex A17.9.3).
const CNPReservedLen = 16

// BTH is a view over the base transport header (IBA vol.1 9.2) at the start of
// a packet. Get one from [BTHOf]; it is as long-lived as the bytes beneath.
//
//	byte 0: opcode
//	     1: solicited event (0x80), MigReq (0x40), pad count (0x30), version (0x0F)
//	  2, 3: P_Key
//	     4: FECN (0x80), BECN (0x40), reserved (0x3F): masked in the ICRC
//	  5..7: destination QPN
//	     8: AckReq (0x80), reserved (0x7F)
//	 9..11: PSN
//
// Setters change the bits of their field and no other.
type BTH []byte

// BTHOf returns the view over the first bytes of a packet; ok is false, and
// the view nil, if there are fewer than BTHLen. b is borrowed.
func BTHOf(b []byte) (h BTH, ok bool) {
	if len(b) < BTHLen {
		return nil, false
	}
	return BTH(b[:BTHLen:BTHLen]), true
}

// Opcode returns the operation.
func (h BTH) Opcode() Opcode { return Opcode(h[0]) }

// Solicited reports whether the responder shall raise a solicited event.
func (h BTH) Solicited() bool { return h[1]&0x80 != 0 }

// MigReq returns the state of path migration: rxe sends 0, most RNICs 1
// ("migrated"); it means nothing where automatic path migration is not spoken.
func (h BTH) MigReq() bool { return h[1]&0x40 != 0 }

// Pad returns the number of pad bytes at the end of the payload, 0 to 3.
func (h BTH) Pad() uint8 { return h[1] >> 4 & 3 }

// Version returns the transport version, 0 in every packet so far.
func (h BTH) Version() uint8 { return h[1] & 0x0F }

// PKey returns the partition key.
func (h BTH) PKey() ib.PKey { return ib.PKey(binary.BigEndian.Uint16(h[2:])) }

// FECN reports whether a switch marked congestion in the InfiniBand way; RoCE
// marks the IP header instead.
func (h BTH) FECN() bool { return h[4]&0x80 != 0 }

// BECN reports whether congestion is notified backwards: set in a CNP.
func (h BTH) BECN() bool { return h[4]&0x40 != 0 }

// DestQPN returns the QP that the packet is for.
func (h BTH) DestQPN() ib.QPN { return ib.QPN(get24(h[5:])) }

// AckReq reports whether the requester asks for an acknowledgement.
func (h BTH) AckReq() bool { return h[8]&0x80 != 0 }

// PSN returns the packet sequence number.
func (h BTH) PSN() ib.PSN { return ib.PSN(get24(h[9:])) }

// SetOpcode sets the operation.
func (h BTH) SetOpcode(o Opcode) { h[0] = uint8(o) }

// SetSolicited sets the solicited event bit.
func (h BTH) SetSolicited(on bool) { setBit(&h[1], 0x80, on) }

// SetMigReq sets the migration bit.
func (h BTH) SetMigReq(on bool) { setBit(&h[1], 0x40, on) }

// SetPad sets the pad count; bits above the two of the field are dropped.
func (h BTH) SetPad(n uint8) { h[1] = h[1]&^0x30 | n&3<<4 }

// SetVersion sets the transport version, of which four bits are kept.
func (h BTH) SetVersion(v uint8) { h[1] = h[1]&^0x0F | v&0x0F }

// SetPKey sets the partition key.
func (h BTH) SetPKey(k ib.PKey) { binary.BigEndian.PutUint16(h[2:], uint16(k)) }

// SetFECN sets the forward congestion bit.
func (h BTH) SetFECN(on bool) { setBit(&h[4], 0x80, on) }

// SetBECN sets the backward congestion bit.
func (h BTH) SetBECN(on bool) { setBit(&h[4], 0x40, on) }

// SetDestQPN sets the destination, of which 24 bits are kept.
func (h BTH) SetDestQPN(q ib.QPN) { put24(h[5:], uint32(q)) }

// SetAckReq sets the bit that asks for an acknowledgement.
func (h BTH) SetAckReq(on bool) { setBit(&h[8], 0x80, on) }

// SetPSN sets the packet sequence number, of which 24 bits are kept.
func (h BTH) SetPSN(p ib.PSN) { put24(h[9:], uint32(p)) }

func setBit(b *byte, mask byte, on bool) {
	if on {
		*b |= mask
	} else {
		*b &^= mask
	}
}

func get24(b []byte) uint32 {
	_ = b[2]
	return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
}

func put24(b []byte, v uint32) {
	_ = b[2]
	b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v)
}
