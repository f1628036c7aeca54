package report

import (
	"net/netip"

	"github.com/verbena-rdma/verbena/ib"
)

// ntop writes a GID as inet_ntop does an IPv6 address: an IPv4-mapped one with
// its dots.
func ntop(g ib.GID) string {
	if g.Is4() {
		return "::ffff:" + g.Addr().String()
	}
	return netip.AddrFrom16(g).String()
}

// GIDText writes a GID as pingpong and ibv_devinfo do.
func GIDText(g ib.GID) string { return ntop(g) }

// LinkRate returns the width and speed codes of InfiniBand that come closest
// to an interface's speed in Mb/s without exceeding it; 0 gives the least.
func LinkRate(mbps int) (width, speed int) {
	width, speed = 1, 1
	best := 2500
	for _, w := range []struct{ code, lanes int }{{1, 1}, {2, 4}} {
		for _, s := range []struct{ code, mbps int }{{1, 2500}, {2, 5000}, {4, 10000}, {16, 14000}, {32, 25000}, {64, 50000}, {128, 100000}} {
			if r := w.lanes * s.mbps; r <= mbps && r > best {
				best, width, speed = r, w.code, s.code
			}
		}
	}
	return width, speed
}
