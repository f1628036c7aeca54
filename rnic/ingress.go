package rnic

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
)

type source struct{}
type sourceCache struct{}
type scratch struct{}

// Ingress takes what a link received, which is lent for the call. Owner.
func (a *Adapter) Ingress(now clock.Time, f *frame.Rx) {}
