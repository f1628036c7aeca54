package verbs

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// netif is a network interface with its addresses, in the system's order.
type netif struct {
	name  string
	index int
	mtu   int
	up    bool // administratively, and with carrier
	loop  bool
	mac   net.HardwareAddr
	addrs []ifAddr
}

// ifAddr is an address of an interface.
type ifAddr struct {
	addr     netip.Addr // IPv6 link-local with its zone
	bits     int        // length of the prefix
	netdev   string
	ifIndex  int
	mac      net.HardwareAddr
	unusable string // why nothing can be sent from it
}

// isDefaultGID reports whether the address is the link-local one that is made
// of the interface's MAC address: the default GID.
func (a ifAddr) isDefaultGID() bool {
	if !a.addr.Is6() || !a.addr.IsLinkLocalUnicast() || len(a.mac) != 6 {
		return false
	}
	b := a.addr.As16()
	return [8]byte(b[8:]) == eui64(a.mac)
}

// eui64 returns the interface identifier of a MAC address (RFC 4291 appendix A).
func eui64(mac net.HardwareAddr) [8]byte {
	return [8]byte{mac[0] ^ 2, mac[1], mac[2], 0xFF, 0xFE, mac[3], mac[4], mac[5]}
}

// netifs lists the interfaces of this host.
func netifs() ([]netif, error) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	flags := addr6Flags()
	var out []netif
	for _, i := range ifs {
		n := netif{
			name: i.Name, index: i.Index, mtu: i.MTU, mac: i.HardwareAddr,
			up:   i.Flags&net.FlagUp != 0 && i.Flags&net.FlagRunning != 0,
			loop: i.Flags&net.FlagLoopback != 0,
		}
		if isZero(n.mac) {
			n.mac = nil
		}
		as, err := i.Addrs()
		if err != nil {
			continue // the interface has gone meanwhile
		}
		for _, a := range as {
			ipnet, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			addr, ok := netip.AddrFromSlice(ipnet.IP)
			if !ok {
				continue
			}
			bits, _ := ipnet.Mask.Size()
			x := ifAddr{addr: addr.Unmap(), bits: bits, netdev: i.Name, ifIndex: i.Index, mac: n.mac}
			if x.addr.Is6() {
				x.unusable = flags[x.addr].unusable()
				if x.addr.IsLinkLocalUnicast() {
					x.addr = x.addr.WithZone(i.Name)
				}
			}
			n.addrs = append(n.addrs, x)
		}
		out = append(out, n)
	}
	return out, nil
}

func isZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// owner returns the interface that owns addr, and addr as an address of it.
// Every address of a loopback interface's IPv4 prefix is one of its addresses.
func owner(ifs []netif, addr netip.Addr) (*netif, ifAddr, bool) {
	addr = addr.Unmap()
	for i := range ifs {
		for _, a := range ifs[i].addrs {
			if a.addr == addr || (addr.Zone() == "" && !addr.IsLinkLocalUnicast() && a.addr.WithZone("") == addr) {
				return &ifs[i], a, true
			}
		}
	}
	for i := range ifs {
		if !ifs[i].loop {
			continue
		}
		for _, a := range ifs[i].addrs {
			if addr.Is4() && netip.PrefixFrom(a.addr, a.bits).Contains(addr) {
				a.addr = addr
				return &ifs[i], a, true
			}
		}
	}
	return nil, ifAddr{}, false
}

// addr6Flag are the flags of an IPv6 address, as Linux shows them.
type addr6Flag uint32

const (
	flagDADFailed addr6Flag = 0x08
	flagTentative addr6Flag = 0x40
)

func (f addr6Flag) unusable() string {
	switch {
	case f&flagDADFailed != 0:
		return "duplicate address detection failed: another host has this address"
	case f&flagTentative != 0:
		return "the address is tentative: duplicate address detection has not finished"
	}
	return ""
}

// addr6Flags reads the flags of the IPv6 addresses; nothing where the system
// does not show them so.
func addr6Flags() map[netip.Addr]addr6Flag {
	text, err := os.ReadFile("/proc/net/if_inet6")
	if err != nil {
		return nil
	}
	m := make(map[netip.Addr]addr6Flag)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line) // address index prefix scope flags name
		if len(f) < 6 || len(f[0]) != 32 {
			continue
		}
		b, err := hex.DecodeString(f[0])
		if err != nil {
			continue
		}
		flags, err := strconv.ParseUint(f[4], 16, 32)
		if err != nil {
			continue
		}
		m[netip.AddrFrom16([16]byte(b))] = addr6Flag(flags)
	}
	return m
}

// linkState is the state of an interface.
type linkState struct {
	mtu       int
	running   bool // it is up, with carrier
	speedMbps int  // 0 where it has none
}

// speedMbps returns the speed of an interface, 0 where it has none.
func speedMbps(name string) int {
	text, err := os.ReadFile(filepath.Join("/sys/class/net", name, "speed"))
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n < 0 {
		return 0
	}
	return n
}
