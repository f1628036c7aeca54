package rnic

import (
	"fmt"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
)

// GSIQKey is the Q_Key of QP1 (IBA vol.1 10.2.5, table 41): a send with any
// privileged key carries it.
const GSIQKey ib.QKey = 0x80010000

// CreateGSI makes QP1, the general services interface, in the Reset state (IBA
// vol.1 13.5.1): a UD queue pair with that number, over which the connection
// managers of this port and others talk. It goes through the states as others
// do, with the Q_Key [GSIQKey]. There is one at a time; ErrBusy says that it is
// taken. cfg.Type means nothing. Owner.
func (a *Adapter) CreateGSI(_ clock.Time, cfg QPConfig) (*QP, error) {
	if a.qps.get(ib.QPGSI) != nil {
		return nil, fmt.Errorf("create QP 1: another connection manager of this device has it: %w", ErrBusy)
	}
	cfg.Type = ib.UD
	return a.createQP(cfg, ib.QPGSI)
}
