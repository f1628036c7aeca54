package anonymise

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
)

// mapper replaces numbers. Its functions are one to one.
type mapper struct {
	key   []byte
	bits  map[string]byte
	low24 map[uint32]uint32
}

func newMapper(key []byte) *mapper {
	return &mapper{key: key, bits: map[string]byte{}, low24: map[uint32]uint32{}}
}

func (m *mapper) prf(domain string, b []byte) []byte {
	h := hmac.New(sha256.New, m.key)
	h.Write([]byte(domain))
	h.Write(b)
	return h.Sum(nil)
}

// keepPrefixes flips each bit of b from bit on by what the bits before it are: two
// values that agree in n bits agree in n bits afterwards.
func (m *mapper) keepPrefixes(domain string, b []byte, from int) []byte {
	out := append([]byte{}, b...)
	for i := from; i < 8*len(b); i++ {
		// The first i bits of b, and i.
		head := make([]byte, len(b)+1)
		copy(head, b[:(i+7)/8])
		if r := i % 8; r != 0 {
			head[i/8] &= 0xff << (8 - r)
		}
		head[len(b)] = byte(i)
		flip, ok := m.bits[domain+string(head)]
		if !ok {
			flip = m.prf(domain, head)[0] & 1
			if len(m.bits) < 1<<20 {
				m.bits[domain+string(head)] = flip
			}
		}
		out[i/8] ^= flip << (7 - i%8)
	}
	return out
}

// serial permutes the 24 bits that a vendor gives out: a Feistel network of two halves
// of 12 bits. 0 stays, so that "no address" does.
func (m *mapper) serial(v uint32) uint32 {
	if v == 0 {
		return 0
	}
	if n, ok := m.low24[v]; ok {
		return n
	}
	n := v
	for n = m.feistel(n); n == 0; n = m.feistel(n) {
	}
	m.low24[v] = n
	return n
}

func (m *mapper) feistel(v uint32) uint32 {
	l, r := v>>12&0xfff, v&0xfff
	for round := range byte(4) {
		f := binary.BigEndian.Uint16(m.prf("mac", []byte{round, byte(r >> 8), byte(r)}))
		l, r = r, l^uint32(f)&0xfff
	}
	return l<<12 | r
}

// mac replaces the last three bytes; groups (multicast, broadcast) stay.
func (m *mapper) mac(b []byte) []byte {
	out := append([]byte{}, b...)
	if b[0]&1 != 0 {
		return out
	}
	putSerial(out[3:], m.serial(serialOf(out[3:])))
	return out
}

func serialOf(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

func putSerial(b []byte, v uint32) { b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v) }

// ofMAC reports whether an EUI-64 is a MAC address with ff:fe (IPv6, rxe) or 03:00
// (mlx5) in the middle.
func ofMAC(b []byte) bool { return b[3] == 0xff && b[4] == 0xfe || b[3] == 0x03 && b[4] == 0x00 }

// guid replaces a GUID or an interface identifier of link-local scope.
func (m *mapper) guid(b []byte) []byte {
	if binary.BigEndian.Uint64(b) == 0 {
		return b
	}
	out := append([]byte{}, b...)
	if ofMAC(b) {
		putSerial(out[5:], m.serial(serialOf(out[5:])))
		return out
	}
	return m.keepPrefixes("guid", b, 0)
}

// addr replaces an IP address.
func (m *mapper) addr(a netip.Addr) netip.Addr {
	switch {
	case a.Is4In6():
		b := m.addr(a.Unmap()).As4()
		x := a.As16()
		copy(x[12:], b[:])
		return netip.AddrFrom16(x)
	case a.IsUnspecified(), a.IsLoopback(), a.IsMulticast():
		return a
	case a.Is4():
		b := a.As4()
		keep := 8
		switch {
		case b[0] == 0 || b[0] >= 240:
			return a
		case b[0] == 172 && b[1]&0xf0 == 16:
			keep = 12
		case b[0] == 192 && b[1] == 168, b[0] == 169 && b[1] == 254:
			keep = 16
		case b[0] == 100 && b[1]&0xc0 == 64:
			keep = 10
		}
		return netip.AddrFrom4([4]byte(m.keepPrefixes("ip4", b[:], keep)))
	}
	b := a.As16()
	if a.IsLinkLocalUnicast() {
		copy(b[8:], m.guid(b[8:]))
		return netip.AddrFrom16(b).WithZone(a.Zone())
	}
	out := m.keepPrefixes("ip6", b[:], 16)
	if ofMAC(b[8:]) && b[3+8] == 0xff {
		copy(out[8:], m.guid(b[8:]))
	}
	return netip.AddrFrom16([16]byte(out))
}

// host replaces a host's name.
func (m *mapper) host(name string) string {
	return "host-" + hex.EncodeToString(m.prf("host", []byte(name))[:3])
}
