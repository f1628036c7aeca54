package wire

import (
	"encoding/binary"

	"github.com/verbena-rdma/verbena/ib"
)

// IETHLen is the length of the invalidate extended transport header (IBA
// vol.1 9.3): the key that the receiver of the SEND shall invalidate.
const IETHLen = 4

func getIETH(b []byte) ib.RKey    { return ib.RKey(binary.BigEndian.Uint32(b)) }
func putIETH(b []byte, k ib.RKey) { binary.BigEndian.PutUint32(b, uint32(k)) }
