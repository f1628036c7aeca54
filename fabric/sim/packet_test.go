package sim

import (
	"testing"
	"unsafe"
)

func TestPacketIsTwoCacheLines(t *testing.T) {
	if n := unsafe.Sizeof(Packet{}); n != 128 {
		t.Errorf("%d bytes", n)
	}
	if n := unsafe.Offsetof(Packet{}.Head); n > 64 {
		t.Errorf("Head is at %d: switches look at two lines", n)
	}
}

func TestPoolGivesCleanPackets(t *testing.T) {
	var l Pool
	p := l.Get()
	*p = Packet{
		Next: p, Tail: 1, Bytes: 1, Payload: 1, Flow: 1, Src: 1, Dst: 1, Hash: 1, In: 1, SrcPort: 1, DstPort: 1, Kind: 1, DSCP: 1, ECN: 1,
		PCP: 1, TTL: 1, Prio: 1, Pool: 1, N: 1, Enable: 1, Flags: 1, Tagged: true, Bad: true, V1: true, Ack: true,
	}
	l.Put(p)
	q := l.Get()
	if q != p || l.Live() != 1 {
		t.Fatal("not recycled")
	}
	if *q != (Packet{}) {
		t.Errorf("%+v", *q)
	}
}
