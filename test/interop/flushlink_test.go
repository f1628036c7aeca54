//go:build linux

package interop

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/wire"
)

// flushLink stands between us and a fault of rdma_rxe (seen in Linux 6.12): the ICRC of its FLUSH requests, sent and
// expected, covers BTH, FETH and RETH a second time behind the packet, with nothing masked. Everything else of its FLUSH
// is as the specification says, and held against it by this link, which translates the ICRC and nothing more. What rdma_rxe
// sends with another ICRC stays wrong after that, and is dropped by us.
type flushLink struct{ link.Link }

// flushLen is a FLUSH request without its ICRC.
const flushLen = wire.BTHLen + wire.FETHLen + wire.RETHLen

func isFlush(p []byte) bool {
	return len(p) == flushLen+4 && wire.Opcode(p[0]) == wire.RCFlush
}

// again turns the right ICRC of a FLUSH request into rdma_rxe's.
func again(p []byte) {
	icrc := binary.LittleEndian.Uint32(p[flushLen:])
	binary.LittleEndian.PutUint32(p[flushLen:], crc32.Update(icrc, crc32.IEEETable, p[:flushLen]))
}

// once is the reverse: it takes the second copy out of the CRC, from its last byte to its first.
func once(p []byte) {
	v := ^binary.LittleEndian.Uint32(p[flushLen:])
	for i := flushLen - 1; i >= 0; i-- {
		for range 8 {
			if v&(1<<31) != 0 {
				v = (v^crc32.IEEE)<<1 | 1
			} else {
				v <<= 1
			}
		}
		v ^= uint32(p[i])
	}
	binary.LittleEndian.PutUint32(p[flushLen:], ^v)
}

// eachFlush calls f with every FLUSH request among packets of seg bytes.
func eachFlush(b []byte, seg int, f func([]byte)) {
	if seg <= 0 {
		seg = len(b)
	}
	for len(b) > 0 {
		p := b[:min(seg, len(b))]
		if isFlush(p) {
			f(p)
		}
		b = b[len(p):]
	}
}

func (l flushLink) Recv(now clock.Time, rx []frame.Rx) (int, error) {
	n, err := l.Link.Recv(now, rx)
	for i := range rx[:n] {
		eachFlush(rx[i].Data, rx[i].Seg, once)
	}
	return n, err
}

func (l flushLink) Commit(now clock.Time, tx []frame.Run) error {
	for i := range tx {
		eachFlush(tx[i].Buf[:tx[i].N], tx[i].Seg, again)
	}
	return l.Link.Commit(now, tx)
}

// TestFlushOfRxe takes one of rdma_rxe's FLUSH requests as tcpdump has recorded it.
func TestFlushOfRxe(t *testing.T) {
	recorded := []byte{
		0x1c, 0x00, 0xff, 0xff, 0x00, 0x67, 0x19, 0x94, 0x80, 0x3a, 0xfc, 0x4f, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
		0x23, 0x1d, 0x44, 0xd0, 0xc0, 0x00, 0x28, 0xa0, 0xf1, 0xbc, 0x00, 0x00, 0x13, 0x88, 0xa9, 0xa8, 0x94, 0xdc,
	}
	right := []byte{0x23, 0x64, 0x8c, 0xc8} // the CRC-32 of the masked packet by zlib
	p := append([]byte{}, recorded...)
	eachFlush(p, 0, once)
	if string(p[flushLen:]) != string(right) {
		t.Errorf("ICRC % x, want % x", p[flushLen:], right)
	}
	eachFlush(p, len(p), again)
	if string(p) != string(recorded) {
		t.Errorf("back again % x, want % x", p, recorded)
	}
}
