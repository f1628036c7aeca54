package rnic

import (
	"net/netip"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
)

// ahIndexBits is how much of an AH handle is its place in the table; the rest
// tells one occupant of the place from the next.
const ahIndexBits = 20

type path struct{}
type destKey struct{ src, dst netip.Addr }
type dest struct{ window *transport.Window }
type ahTable struct{}

// CreateAH makes an address handle. Owner.
func (a *Adapter) CreateAH(pd mem.PD, av *ib.AV) (ib.AH, error) { return 0, ErrUnsupported }

// DestroyAH removes an address handle. Owner.
func (a *Adapter) DestroyAH(h ib.AH) error { return ErrUnsupported }
