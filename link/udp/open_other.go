//go:build !linux

package udp

import "github.com/verbena-rdma/verbena/link"

func openSystem(cfg Config) (link.Link, error) { return openPortable(cfg) }
