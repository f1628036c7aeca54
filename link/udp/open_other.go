//go:build !linux

package udp

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/verbena-rdma/verbena/link"
)

func openSystem(cfg Config) (link.Link, error) { return openPortable(cfg) }

func openShards(_ *Config, n int) ([]link.Link, error) {
	return nil, fmt.Errorf("open UDP links: %d shards: this system cannot steer packets by queue pair: %w", n, errors.ErrUnsupported)
}

// inUse explains that somebody has the port; who, this system does not tell.
func inUse(a netip.Addr, port uint16, err error) error {
	return fmt.Errorf("open UDP link on %v: port %d is taken by another program; close it or use another address: %w", a, port, err)
}
