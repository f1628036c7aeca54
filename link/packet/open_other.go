//go:build !linux

package packet

import (
	"errors"
	"fmt"

	"github.com/verbena-rdma/verbena/link"
)

func openSystem(cfg Config) (link.Link, error) {
	return nil, fmt.Errorf("open packet link on %s: this system has no AF_PACKET sockets; the UDP link needs none: %w", cfg.Interface, errors.ErrUnsupported)
}
