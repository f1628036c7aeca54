package rnic

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
)

// Egress fills an empty run from the queue pair whose turn it is. false means
// that nothing may leave now. Owner.
func (a *Adapter) Egress(now clock.Time, r *frame.Run) bool { return false }
