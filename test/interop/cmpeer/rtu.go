package main

import (
	"encoding/binary"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
)

// withoutRTU is a link at which no ReadyToUse arrives: the n-th packet of a
// conversation would be another one when something else is late or repeated.
type withoutRTU struct{ link.Link }

// Where a MAD to QP1 has what says that it is an RTU: behind BTH and DETH, the
// class and the attribute (IBA vol.1 13.4.2, 12.6.9).
const (
	bthQPN, madAt       = 5, 12 + 8
	madClass, madAttrID = madAt + 1, madAt + 16
	classCM, attrRTU    = 0x07, 0x0014
)

// Recv implements link.Link. A packet whose ICRC is wrong is one that has not
// arrived.
func (l withoutRTU) Recv(now clock.Time, rx []frame.Rx) (int, error) {
	n, err := l.Link.Recv(now, rx)
	for i := range rx[:n] {
		b := rx[i].Data
		if len(b) < madAttrID+2 || b[bthQPN] != 0 || b[bthQPN+1] != 0 || b[bthQPN+2] != 1 {
			continue
		}
		if b[madClass] == classCM && binary.BigEndian.Uint16(b[madAttrID:]) == attrRTU {
			b[len(b)-1] ^= 0xFF
		}
	}
	return n, err
}
