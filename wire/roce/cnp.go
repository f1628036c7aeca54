package roce

import (
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
)

// NewCNP returns the congestion notification packet (IBA vol.1 annex A17.9.3)
// that tells the sender of a marked packet to slow down: a BTH with BECN set
// and 16 zero bytes. dest is the QP that sent the flow, at the address that it
// came from. The packet belongs to no service: its PSN is 0 and means nothing.
func NewCNP(dest ib.QPN) (p wire.Packet) {
	p.SetOp(wire.CNP)
	p.BECN = true
	p.PKey = ib.DefaultPKey
	p.DestQPN = dest
	return p
}
