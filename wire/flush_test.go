package wire_test

import (
	"encoding/hex"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
)

// Whole packets of the two operations of IBA 1.5 (annex A19), worked out from the
// layouts of their headers:
//
//	FLUSH         BTH 1c: solicited 0, pad 0, P_Key ffff, QPN 123456, AckReq, PSN 654321
//	              FETH: level 1, placement 1 → 0x11    RETH: VA, rkey, length
//	ATOMIC WRITE  BTH 1d …  RETH with length 8  8 bytes, no pad
func TestFlushAndAtomicWriteByByte(t *testing.T) {
	for _, c := range []struct {
		name, want string
		p          wire.Packet
	}{
		{
			"FLUSH of a region", "1c00ffff0012345680654321" + "00000011" + "0102030405060708090a0b0c00010000",
			wire.Packet{
				Op: wire.RCFlush, FETH: wire.FETH{Placement: 1, Level: 1},
				RETH: wire.RETH{VA: 0x0102030405060708, RKey: 0x090A0B0C, Len: 65536},
			},
		},
		{
			"FLUSH of a range to persistence", "1c00ffff0012345680654321" + "00000002" + "0102030405060708090a0b0c00000001",
			wire.Packet{
				Op: wire.RCFlush, FETH: wire.FETH{Placement: 2},
				RETH: wire.RETH{VA: 0x0102030405060708, RKey: 0x090A0B0C, Len: 1},
			},
		},
		{
			"ATOMIC WRITE", "1d00ffff0012345680654321" + "0102030405060708090a0b0c00000008" + "1122334455667788",
			wire.Packet{
				Op: wire.RCAtomicWrite, RETH: wire.RETH{VA: 0x0102030405060708, RKey: 0x090A0B0C, Len: 8},
				Payload: []byte{0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88},
			},
		},
	} {
		c.p.PKey, c.p.DestQPN, c.p.PSN, c.p.AckReq = ib.DefaultPKey, 0x123456, 0x654321, true
		b := make([]byte, 64)
		n := c.p.EncodeHeaders(b)
		b = append(b[:n], c.p.Payload...)
		if got := hex.EncodeToString(b); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		var q wire.Packet
		if r := q.Decode(b); r != wire.ReasonNone || q.Op != c.p.Op || q.RETH != c.p.RETH || q.FETH != c.p.FETH && c.p.Op == wire.RCFlush ||
			string(q.Payload) != string(c.p.Payload) || q.PSN != c.p.PSN || !q.AckReq {
			t.Errorf("%s: decodes to %+v", c.name, q)
		}
		for cut := range len(b) {
			if c.p.Op == wire.RCFlush && q.Decode(b[:cut]) == wire.ReasonNone {
				t.Errorf("%s: %d bytes are a packet", c.name, cut)
			}
		}
	}
}
