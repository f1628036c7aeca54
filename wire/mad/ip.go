package mad

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// IPLen is the length of the header that IP-based connection management puts
// before the user's private data in a REQ and a SIDR REQ; the rest is theirs.
const (
	IPLen          = 36
	REQUserLen     = REQPrivateLen - IPLen
	SIDRREQUserLen = SIDRREQPrivateLen - IPLen
)

// IP is that header (IBA annex A11.3): who asks for whom, as IP addresses.
type IP struct {
	Src netip.AddrPort
	Dst netip.Addr
}

// DecodeIP reads the header; b has at least IPLen bytes. The error says what is
// not as it must be; the text is for a log.
func DecodeIP(b []byte) (h IP, err error) {
	b = b[:IPLen:IPLen]
	if b[0]>>4 != 0 {
		return h, fmt.Errorf("IP CM major version %d, must be 0", b[0]>>4)
	}
	var src netip.Addr
	switch b[1] >> 4 {
	case 4:
		src, h.Dst = netip.AddrFrom4([4]byte(b[16:20])), netip.AddrFrom4([4]byte(b[32:36]))
	case 6:
		src, h.Dst = netip.AddrFrom16([16]byte(b[4:20])), netip.AddrFrom16([16]byte(b[20:36]))
	default:
		return h, fmt.Errorf("IP CM address version %d, must be 4 or 6", b[1]>>4)
	}
	h.Src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(b[2:]))
	return h, nil
}

// Encode writes the header to b, which has room for IPLen bytes. Both addresses
// are of one family.
func (h *IP) Encode(b []byte) {
	b = b[:IPLen:IPLen]
	clear(b)
	binary.BigEndian.PutUint16(b[2:], h.Src.Port())
	src, dst := h.Src.Addr().Unmap(), h.Dst.Unmap()
	if src.Is4() && dst.Is4() {
		b[1] = 4 << 4
		s, d := src.As4(), dst.As4()
		copy(b[16:], s[:])
		copy(b[32:], d[:])
		return
	}
	b[1] = 6 << 4
	s, d := src.As16(), dst.As16()
	copy(b[4:], s[:])
	copy(b[20:], d[:])
}
