package udp

import (
	"fmt"
	"net/netip"
)

func inUse(a netip.Addr, port uint16, err error) error {
	return fmt.Errorf("open UDP link on %v: port %d is taken: %w", a, port, err)
}
