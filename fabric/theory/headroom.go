package theory

import (
	"fmt"
	"strings"
)

// FrameGapBits is preamble, start delimiter and inter-frame gap: what a frame
// costs beside its bytes (802.3 4.4.2).
const FrameGapBits = 160

// PauseFrameBytes is the length of a PFC or PAUSE frame.
const PauseFrameBytes = 64

// FrameBits returns the bit times that a frame of so many bytes, destination
// address to FCS, takes on the link: 8*len + 160.
func FrameBits(bytes int64) int64 { return 8*bytes + FrameGapBits }

// Cable delays in ps for a metre.
const (
	// CablePerMetre is the figure of 802.1Qbb's worked example: 5 ns.
	CablePerMetre int64 = 5000
	// FibrePerMetre and CopperPerMetre are Cisco's (white paper c11-542809):
	// 65 % and 70 % of the speed of light.
	FibrePerMetre  int64 = 5130
	CopperPerMetre int64 = 4760
)

// StandardDelays returns the upper bounds, in bit times, of the delay of a port's
// MAC, PCS and PMA (transmit and receive together) and of the time in which it
// must obey a pause frame, which 802.3 gives in quanta (annex 31B.3.7). ok is
// false where our sources have no figure: the interface delay at 400 Gb/s, and
// every other speed.
func StandardDelays(rate int64) (intf, response int64, ok bool) {
	switch rate {
	case 10e9:
		return 8192, 60 * QuantaBits, true
	case 25e9:
		return 6144, 80 * QuantaBits, true
	case 40e9:
		return 24576, 118 * QuantaBits, true
	case 100e9:
		return 122880, 394 * QuantaBits, true
	case 400e9:
		return 0, 905 * QuantaBits, false
	}
	return 0, 0, false
}

// Link is what headroom depends on.
type Link struct {
	Rate  int64 // bit/s
	Delay int64 // one way, ps
	// MaxFrame is the longest frame of any class that this end may be sending
	// when it wants to send the pause frame, in bytes.
	MaxFrame int64
	// NoDropFrame is the longest frame of the paused class that the peer may
	// have begun, in bytes.
	NoDropFrame int64
	// Interface and Response are delays in bit times: those of StandardDelays,
	// or of the device.
	Interface int64
	Response  int64
}

// Headroom is the room that a class needs above its XOFF threshold, by term, in
// bits (802.1Qbb, buffer requirements). What comes in after the threshold was crossed fills
// it: while this end finishes a frame, sends the pause frame, while that travels
// and is obeyed, what the peer has begun, and what is on the cable.
type Headroom struct {
	MaxFrame    int64 // D_maxframe: a frame on its way out cannot be preempted
	Pause       int64 // D_pause
	Cable       int64 // 2 * D_cable
	Interface   int64 // D_intf, transmit and receive
	Response    int64 // D_resp
	NoDropFrame int64 // D_maxframe_nodrop: the peer finishes what it has begun
}

// Headroom returns the terms for a link.
func (l Link) Headroom() Headroom {
	return Headroom{
		MaxFrame:    FrameBits(l.MaxFrame),
		Pause:       FrameBits(PauseFrameBytes),
		Cable:       2 * mulDiv(l.Delay, l.Rate, Second, true),
		Interface:   l.Interface,
		Response:    l.Response,
		NoDropFrame: FrameBits(l.NoDropFrame),
	}
}

// Bits returns the sum.
func (h Headroom) Bits() int64 {
	return h.MaxFrame + h.Pause + h.Cable + h.Interface + h.Response + h.NoDropFrame
}

// Bytes returns the sum in bytes, rounded up.
func (h Headroom) Bytes() int64 { return (h.Bits() + 7) / 8 }

// Cells returns the buffer cells that the sum fills, rounded up. cell is in
// bytes. A frame that fills its last cell badly needs more: double the terms of
// frames for frames one byte longer than a cell.
func (h Headroom) Cells(cell int64) int64 {
	if cell <= 0 {
		return 0
	}
	return (h.Bytes() + cell - 1) / cell
}

// String returns the sum and its terms, in KB of 1,000 bytes: "headroom 63.1 KB =
// own frame 9.2 + pause frame 0.1 + cable 12.5 + …".
func (h Headroom) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "headroom %.1f KB", float64(h.Bits())/8e3)
	sep := " = "
	for _, t := range [...]struct {
		name string
		bits int64
	}{
		{"own frame", h.MaxFrame},
		{"pause frame", h.Pause},
		{"cable both ways", h.Cable},
		{"interface", h.Interface},
		{"response", h.Response},
		{"peer's frame", h.NoDropFrame},
	} {
		if t.bits != 0 {
			fmt.Fprintf(&b, "%s%s %.1f", sep, t.name, float64(t.bits)/8e3)
			sep = " + "
		}
	}
	return b.String()
}

// IdealHeadroom returns the bytes that suffice in a simulator whose ports have no
// delay of their own: 2*rate*delay + 2 frames + the pause frame + rate*response.
// frame and pause are bytes on the wire, delay and response ps. It is the sum
// above with D_intf = 0. Nothing is dropped with it; with two frames less, the
// worst phase (both ends have just begun a frame) drops.
func IdealHeadroom(rate, delay, frame, pause, response int64) int64 {
	return mulDiv(2*delay+response, rate, 8*Second, true) + 2*frame + pause
}

// HPCCHeadroom returns what HPCC's simulator reserves: 3*rate*delay, in bytes.
// With short cables that is less than a frame.
func HPCCHeadroom(rate, delay int64) int64 { return 3 * mulDiv(delay, rate, 8*Second, false) }

// ConweaveHeadroom returns what conweave's simulator reserves:
// 2*rate*delay + 2 MTU, in bytes.
func ConweaveHeadroom(rate, delay, mtu int64) int64 {
	return 2*mulDiv(delay, rate, 8*Second, false) + 2*mtu
}
