package wire_test

import (
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
)

// The table says twice what a name says once: hold them together.
func TestTableAgreesWithItsNames(t *testing.T) {
	n := 0
	wire.Opcodes(func(i *wire.OpInfo) {
		n++
		has := func(s string) bool { return strings.Contains(i.Name, s) }
		if i != i.Op.Info() || i.Op.String() != i.Name {
			t.Errorf("%s: not its own row", i.Name)
		}
		if has("Immediate") != i.HasImm() || has("Invalidate") != i.HasInv() {
			t.Errorf("%s: headers %b", i.Name, i.Headers)
		}
		if i.Op != wire.CNP {
			service := map[ib.QPType]byte{ib.RC: 0, ib.UC: 1, ib.UD: 3}[i.Transport]
			if byte(i.Op)>>5 != service || !strings.HasPrefix(i.Name, i.Transport.String()+" ") {
				t.Errorf("%s: opcode %02x, service %v", i.Name, byte(i.Op), i.Transport)
			}
		}
		for _, pos := range []wire.Position{wire.PosFirst, wire.PosMiddle, wire.PosLast} {
			if has(" "+pos.String()) != (i.Pos == pos) {
				t.Errorf("%s: position %v", i.Name, i.Pos)
			}
		}
		kinds := map[wire.Kind]bool{
			wire.KindSend: has("SEND"), wire.KindWrite: has("RDMA WRITE"), wire.KindReadRequest: has("READ Request"),
			wire.KindReadResponse: has("READ response"), wire.KindAck: has("RC Acknowledge"),
			wire.KindAtomicAck: has("ATOMIC Acknowledge"), wire.KindAtomic: has("CmpSwap") || has("FetchAdd"),
			wire.KindCNP: has("CNP"), wire.KindFlush: has("FLUSH"), wire.KindAtomicWrite: has("ATOMIC WRITE"),
		}
		for k, is := range kinds {
			if (i.Kind == k) != is {
				t.Errorf("%s: kind %v", i.Name, i.Kind)
			}
		}
		if i.Response != (has("response") || has("Acknowledge")) {
			t.Errorf("%s: response %v", i.Name, i.Response)
		}
		// A RETH stands in the first packet of a WRITE and in a READ request, and
		// in the two of IBA 1.5.
		reth := i.Kind == wire.KindReadRequest || i.Kind == wire.KindFlush || i.Kind == wire.KindAtomicWrite || i.Kind == wire.KindWrite && i.Pos.Starts()
		// An AETH stands in every response but the middle of a READ's.
		aeth := i.Response && i.Pos != wire.PosMiddle
		if i.Headers.Has(wire.HdrRETH) != reth || i.Headers.Has(wire.HdrAETH) != aeth ||
			i.Headers.Has(wire.HdrDETH) != (i.Transport == ib.UD) ||
			i.Headers.Has(wire.HdrAtomicETH) != (i.Kind == wire.KindAtomic) ||
			i.Headers.Has(wire.HdrFETH) != (i.Kind == wire.KindFlush) ||
			i.Headers.Has(wire.HdrAtomicAckETH) != (i.Kind == wire.KindAtomicAck) {
			t.Errorf("%s: headers %b", i.Name, i.Headers)
		}
		if i.Payload != (i.Kind == wire.KindSend || i.Kind == wire.KindWrite || i.Kind == wire.KindReadResponse || i.Kind == wire.KindAtomicWrite) {
			t.Errorf("%s: payload %v", i.Name, i.Payload)
		}
		if i.Len != wire.BTHLen+i.Headers.Len() || i.Len > wire.MaxHeaderLen {
			t.Errorf("%s: %d bytes", i.Name, i.Len)
		}
		if want := i.Kind == wire.KindSend || i.Kind == wire.KindWrite && i.HasImm(); i.ConsumesReceive() != want {
			t.Errorf("%s: consumes a receive: %v", i.Name, !want)
		}
	})
	if n != 25+12+2+1 {
		t.Errorf("%d opcodes", n)
	}
}

// Offsets of UC are those of RC: the low five bits mean the same.
func TestUCOpcodesAreRCsWithAnotherService(t *testing.T) {
	for o := wire.UCSendFirst; o <= wire.UCWriteOnlyImm; o++ {
		uc, rc := o.Info(), (o & 0x1F).Info()
		if uc == nil || rc == nil || uc.Headers != rc.Headers || uc.Pos != rc.Pos || uc.Kind != rc.Kind || uc.Payload != rc.Payload {
			t.Errorf("%v and %v differ", o, o&0x1F)
		}
	}
}

func TestUnknownOpcodes(t *testing.T) {
	known := 0
	for o := range 256 {
		if wire.Opcode(o).Info() != nil {
			known++
		}
	}
	if known != 40 {
		t.Errorf("%d known", known)
	}
	if got := wire.Opcode(0x15).String(); got != "opcode 0x15" {
		t.Error(got)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{wire.RCWriteLastImm.String(), "RC RDMA WRITE Last with Immediate"},
		{wire.KindAtomicAck.String(), "ATOMIC Acknowledge"},
		{wire.Kind(0).String(), "kind 0"},
		{wire.PosOnly.String(), "Only"},
		{wire.Position(9).String(), "position 9"},
		{wire.ReasonBadPad.String(), "bad pad count"},
		{wire.Reason(200).String(), "reason 200"},
		{wire.AckKind(7).String(), "ack kind 7"},
		{wire.NAKCode(9).String(), "NAK code 9"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
