package packet

import (
	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/ip"
	"github.com/verbena-rdma/verbena/wire/roce"
)

const (
	packetOutgoing  = 4 // linux/if_packet.h PACKET_OUTGOING
	packetOtherHost = 3 // linux/if_packet.h PACKET_OTHERHOST
	adPacketType    = 0xFFFFF000 + 4
	acceptAll       = 1 << 18
)

// filter is the program that the kernel runs on each frame of the interface:
// RoCE of both versions and MAC control frames pass; what this host sends, and
// what is for another one, does not. A tag has been taken off before.
func filter() []unix.SockFilter {
	const (
		ret = unix.BPF_RET | unix.BPF_K
		jmp = unix.BPF_JMP | unix.BPF_JA
		jeq = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		set = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		ldw = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		ldh = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
		ldb = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS
		ldi = unix.BPF_LD | unix.BPF_H | unix.BPF_IND
		ihl = unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH
	)
	// Places in the program.
	const ipv6, port, drop, accept = 15, 18, 19, 20
	p := []struct {
		code    uint16
		k       uint32
		yes, no uint8 // where a test goes on; 0: the next line
	}{
		{code: ldw, k: adPacketType},
		{code: jeq, k: packetOutgoing, yes: drop},
		{code: jeq, k: packetOtherHost, yes: drop},
		{code: ldh, k: 12},
		{code: jeq, k: uint32(ether.TypeRoCEv1), yes: accept},
		{code: jeq, k: uint32(ether.TypeControl), yes: accept},
		{code: jeq, k: uint32(ether.TypeIPv6), yes: ipv6},
		{code: jeq, k: uint32(ether.TypeIPv4), no: drop},
		{code: ldb, k: ether.HeaderLen + 9},
		{code: jeq, k: uint32(ip.ProtoUDP), no: drop},
		{code: ldh, k: ether.HeaderLen + 6},
		{code: set, k: 0x1FFF, yes: drop}, // not the first fragment: no ports
		{code: ihl, k: ether.HeaderLen},
		{code: ldi, k: ether.HeaderLen + 2},
		{code: jmp, k: port - 15},
		{code: ldb, k: ether.HeaderLen + 6}, // IPv6
		{code: jeq, k: uint32(ip.ProtoUDP), no: drop},
		{code: ldh, k: ether.HeaderLen + ip.IPv6Len + 2},
		{code: jeq, k: roce.Port, yes: accept, no: drop}, // port
		{code: ret},
		{code: ret, k: acceptAll},
	}
	out := make([]unix.SockFilter, len(p))
	for i, x := range p {
		out[i] = unix.SockFilter{Code: x.code, K: x.k}
		if x.yes != 0 {
			out[i].Jt = x.yes - uint8(i) - 1
		}
		if x.no != 0 {
			out[i].Jf = x.no - uint8(i) - 1
		}
	}
	return out
}
