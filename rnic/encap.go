package rnic

import (
	"fmt"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/wire"
)

// maxOverhead is the most that surrounds a payload in a UDPPayload frame: a
// WRITE Only with Immediate and the ICRC.
const maxOverhead = wire.BTHLen + wire.RETHLen + wire.ImmDtLen + wire.ICRCLen

// maxRunBytes is the largest UDP payload that IPv4 carries.
const maxRunBytes = 65535 - 20 - 8

// checkEncap says whether the adapter can write the frames of a link. Whole
// Ethernet frames (RoCEv1, and RoCEv2 under AF_PACKET) need an envelope written
// before each segment in build and read in Ingress; nothing else changes.
func checkEncap(e frame.Encap) error {
	switch e {
	case frame.UDPPayload:
		return nil
	case frame.Ethernet:
		return fmt.Errorf("links that carry whole Ethernet frames: %w", ErrUnsupported)
	}
	return fmt.Errorf("link encapsulation %d: %w", e, ErrInvalid)
}
