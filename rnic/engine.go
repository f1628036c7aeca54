package rnic

import (
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/transport/rc"
	"github.com/verbena-rdma/verbena/transport/uc"
	"github.com/verbena-rdma/verbena/transport/ud"
)

// newEngine makes the protocol machine of a queue pair; nil if there is none
// of that type.
func newEngine(t ib.QPType, cfg transport.Config) transport.Engine {
	switch t {
	case ib.RC:
		return rc.New(cfg)
	case ib.UC:
		return uc.New(cfg)
	case ib.UD:
		return ud.New(cfg)
	}
	return nil
}
