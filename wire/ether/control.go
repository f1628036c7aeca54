package ether

import (
	"encoding/binary"
	"fmt"
)

var controlAddr = MAC{0x01, 0x80, 0xC2, 0x00, 0x00, 0x01}

// ControlAddr returns the destination of PAUSE and PFC frames,
// 01:80:c2:00:00:01. Bridges never forward it.
func ControlAddr() MAC { return controlAddr }

// ControlOp is the opcode of a MAC control frame.
type ControlOp uint16

// The opcodes.
const (
	OpPause ControlOp = 0x0001
	OpPFC   ControlOp = 0x0101
)

func (o ControlOp) String() string {
	switch o {
	case OpPause:
		return "PAUSE"
	case OpPFC:
		return "PFC"
	}
	return fmt.Sprintf("MAC control 0x%04x", uint16(o))
}

// QuantaBits is the bit times that one pause quantum lasts.
const QuantaBits = 512

// Priorities is the number of classes that PFC pauses apart.
const Priorities = 8

const (
	pauseLen = 2 + 2
	pfcLen   = 2 + 2 + 2*Priorities
)

// ControlOpOf returns the opcode of a MAC control frame, given what follows
// the Ethernet header; ok is false if there is none. b is borrowed.
func ControlOpOf(b []byte) (op ControlOp, ok bool) {
	if len(b) < 2 {
		return 0, false
	}
	return ControlOp(binary.BigEndian.Uint16(b)), true
}

// Pause is a PAUSE frame (802.3 annex 31B): everything stops for Quanta, and
// goes on at 0.
type Pause struct {
	Quanta uint16
}

// Decode fills p from what follows the Ethernet header of a MAC control frame;
// it is false if that is no PAUSE. b is borrowed.
func (p *Pause) Decode(b []byte) bool {
	if op, _ := ControlOpOf(b); op != OpPause || len(b) < pauseLen {
		return false
	}
	p.Quanta = binary.BigEndian.Uint16(b[2:])
	return true
}

// EncodeFrame writes a whole frame of [MinLen] bytes from src to dst and
// returns its length, or 0 if dst is too short.
func (p *Pause) EncodeFrame(dst []byte, src MAC) int {
	b := controlFrame(dst, src, OpPause)
	if b == nil {
		return 0
	}
	binary.BigEndian.PutUint16(b[2:], p.Quanta)
	return MinLen
}

// PFC is a priority-based flow control frame (802.1Qbb; 802.3 annex 31D). Of
// the priorities whose bit is set in Enable, each stops for its Quanta, and
// goes on at 0. Others are not touched.
type PFC struct {
	Enable uint8 // bit n: priority n
	Quanta [Priorities]uint16
}

// Set makes the frame say that priority prio, 0 to 7, stops for quanta, or
// with 0 goes on.
func (p *PFC) Set(prio uint8, quanta uint16) {
	p.Enable |= 1 << (prio & 7)
	p.Quanta[prio&7] = quanta
}

// For returns what the frame says to a priority; ok is false if nothing.
func (p *PFC) For(prio uint8) (quanta uint16, ok bool) {
	return p.Quanta[prio&7], p.Enable&(1<<(prio&7)) != 0
}

// Decode fills p from what follows the Ethernet header of a MAC control frame;
// it is false if that is no PFC. The upper half of the class-enable vector is
// reserved and ignored. b is borrowed.
func (p *PFC) Decode(b []byte) bool {
	if op, _ := ControlOpOf(b); op != OpPFC || len(b) < pfcLen {
		return false
	}
	p.Enable = b[3]
	for i := range p.Quanta {
		p.Quanta[i] = binary.BigEndian.Uint16(b[4+2*i:])
	}
	return true
}

// EncodeFrame writes a whole frame of [MinLen] bytes from src to dst and
// returns its length, or 0 if dst is too short.
func (p *PFC) EncodeFrame(dst []byte, src MAC) int {
	b := controlFrame(dst, src, OpPFC)
	if b == nil {
		return 0
	}
	b[3] = p.Enable
	for i, q := range p.Quanta {
		binary.BigEndian.PutUint16(b[4+2*i:], q)
	}
	return MinLen
}

// controlFrame writes the header and the opcode of a control frame, clears the
// rest and returns what follows the Ethernet header; nil if dst is too short.
func controlFrame(dst []byte, src MAC, op ControlOp) []byte {
	if len(dst) < MinLen {
		return nil
	}
	dst = dst[:MinLen]
	clear(dst)
	h := Header{Dst: controlAddr, Src: src, Type: TypeControl}
	b := dst[h.Encode(dst):]
	binary.BigEndian.PutUint16(b, uint16(op))
	return b
}
