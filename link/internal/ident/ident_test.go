package ident

import (
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// icrc computes the invariant CRC the long way, over IPv4 with the masked
// fields set, for the Identification id.
func icrc(body []byte, id uint16) uint32 {
	h := make([]byte, 8+20+8)
	for i := range 8 {
		h[i] = 0xFF
	}
	ip := h[8:]
	copy(ip, []byte{0x45, 0xFF, 0, 0, 0, 0, 0x40, 0, 0xFF, 17, 0xFF, 0xFF, 10, 0, 1, 2, 10, 0, 1, 3, 0xC1, 0x23, 0x12, 0xB7, 0, 0, 0xFF, 0xFF})
	binary.BigEndian.PutUint16(ip[2:], uint16(20+8+len(body)+4))
	binary.BigEndian.PutUint16(ip[4:], id)
	binary.BigEndian.PutUint16(ip[24:], uint16(8+len(body)+4))
	m := append([]byte(nil), body...)
	m[4] |= 0xFF // resv8a
	return crc32.Update(crc32.ChecksumIEEE(h), crc32.IEEETable, m)
}

func TestMoveEqualsRecomputing(t *testing.T) {
	for _, n := range []int{12, 16, 28, 76, 1040, 4112} {
		body := make([]byte, n)
		for i := range body {
			body[i] = byte(i * 7)
		}
		for _, c := range [][2]uint16{{0, 0}, {0, 1}, {7, 0}, {63, 2}, {0xFFFF, 0}, {0x1234, 0xFEDC}} {
			seg := binary.LittleEndian.AppendUint32(append([]byte(nil), body...), icrc(body, c[0]))
			Move(seg, c[0], c[1])
			if got, want := binary.LittleEndian.Uint32(seg[n:]), icrc(body, c[1]); got != want {
				t.Errorf("len %d, %d to %d: %08x, want %08x", n, c[0], c[1], got, want)
			}
		}
	}
}

func TestMoveLeavesShortStringsAlone(t *testing.T) {
	for n := range 4 {
		s := []byte{1, 2, 3, 4}[:n]
		Move(s, 1, 2)
		for i := range s {
			if s[i] != byte(i+1) {
				t.Errorf("length %d changed", n)
			}
		}
	}
}
