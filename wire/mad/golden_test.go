package mad_test

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire/internal/golden"
	"github.com/verbena-rdma/verbena/wire/mad"
)

// recorded returns the MADs of the recordings: one connection of rping between
// two Linux peers. A frame to QP1 is 42 bytes of Ethernet, IPv4 and UDP, 20 of
// BTH and DETH, the MAD, 4 of ICRC.
func recorded(t testing.TB) [][]byte {
	var all [][]byte
	for _, f := range golden.Frames(t) {
		if b := f.Bytes; len(b) == 42+20+mad.Len+4 && bytes.Equal(b[42+5:42+8], []byte{0, 0, 1}) {
			all = append(all, b[42+20:42+20+mad.Len])
		}
	}
	if len(all) != 5 {
		t.Fatalf("%d MADs recorded, want REQ, REP, RTU, DREQ, DREP", len(all))
	}
	return all
}

func gid4(s string) ib.GID { return ib.GIDFromAddr(netip.MustParseAddr(s)) }

// What Wireshark's dissector shows of the recording; but it shows flow label and
// packet rate 8 bits beside their places, so those two are read from the bytes.
func TestRecordedMessages(t *testing.T) {
	all := recorded(t)
	zeros := cmpopts.IgnoreFields(mad.REQ{}, "Private")
	for i, want := range []struct {
		attr mad.Attr
		tid  uint64
	}{
		{mad.AttrREQ, 0x00000002a18c2ef5},
		{mad.AttrREP, 0x00000002a18c2ef5},
		{mad.AttrRTU, 0x00000002a18c2ef5},
		{mad.AttrDREQ, 0},
		{mad.AttrDREP, 0},
	} {
		var h mad.Header
		h.Decode(all[i])
		if want.tid == 0 {
			want.tid = h.TID
		}
		if diff := cmp.Diff(mad.NewHeader(want.attr, want.tid), h); diff != "" {
			t.Errorf("header of MAD %d (-want +got):\n%s", i, diff)
		}
	}

	var req mad.REQ
	req.Decode(all[0][mad.HeaderLen:])
	if diff := cmp.Diff(mad.REQ{
		LocalID: 0xf52e8ca1, Service: mad.Service(mad.SpaceTCP, 0x1c06), CAGUID: 0x505400fffe000012, QPN: 0x12,
		ResponderResources: 1, InitiatorDepth: 1, RemoteTimeoutExp: 20, LocalTimeoutExp: 20, StartingPSN: 0x3553c2,
		RetryCount: 7, RNRRetryCount: 7, PKey: 0xffff, MTU: ib.MTU4096, MaxCMRetries: 15,
		Primary: mad.Path{
			LocalLID: 0xffff, RemoteLID: 0xffff, LocalGID: gid4("10.77.0.12"), RemoteGID: gid4("10.77.0.11"),
			FlowLabel: 0x560c3, HopLimit: 64, AckTimeoutExp: 19,
		},
	}, req, zeros); diff != "" {
		t.Errorf("REQ (-want +got):\n%s", diff)
	}
	h, err := mad.DecodeIP(req.Private)
	if want := (mad.IP{Src: netip.MustParseAddrPort("10.77.0.12:44963"), Dst: netip.MustParseAddr("10.77.0.11")}); err != nil || h != want {
		t.Errorf("IP header %+v, %v, want %+v", h, err, want)
	}

	var rep mad.REP
	rep.Decode(all[1][mad.HeaderLen:])
	if diff := cmp.Diff(mad.REP{
		LocalID: 0x1089c9cf, RemoteID: 0xf52e8ca1, QPN: 0x12, StartingPSN: 0x7a0432, ResponderResources: 1, InitiatorDepth: 1,
		TargetAckDelayExp: 15, RNRRetryCount: 7, CAGUID: 0x505400fffe000011,
	}, rep, cmpopts.IgnoreFields(mad.REP{}, "Private")); diff != "" {
		t.Errorf("REP (-want +got):\n%s", diff)
	}
	var rtu mad.RTU
	rtu.Decode(all[2][mad.HeaderLen:])
	if rtu.LocalID != 0xf52e8ca1 || rtu.RemoteID != 0x1089c9cf {
		t.Errorf("RTU %+v", rtu)
	}
	var dreq mad.DREQ
	dreq.Decode(all[3][mad.HeaderLen:])
	if dreq.LocalID != 0xf52e8ca1 || dreq.RemoteID != 0x1089c9cf || dreq.RemoteQPN != 0x12 {
		t.Errorf("DREQ %+v", dreq)
	}
	var drep mad.DREP
	drep.Decode(all[4][mad.HeaderLen:])
	if drep.LocalID != 0x1089c9cf || drep.RemoteID != 0xf52e8ca1 {
		t.Errorf("DREP %+v", drep)
	}
}

// Encoding what was decoded gives the recorded bytes.
func TestRecordedBytesComeBack(t *testing.T) {
	for i, b := range recorded(t) {
		var h mad.Header
		h.Decode(b)
		m := messages()[h.Attr]()
		m.Decode(b[mad.HeaderLen:])
		got := bytes.Repeat([]byte{0xA5}, mad.Len)
		mad.Put(got, h.TID, m)
		if diff := cmp.Diff(b, got); diff != "" {
			t.Errorf("MAD %d (-want +got):\n%s", i, diff)
		}
	}
}

// messages makes one of each kind.
func messages() map[mad.Attr]func() mad.Message {
	return map[mad.Attr]func() mad.Message{
		mad.AttrREQ: func() mad.Message { return new(mad.REQ) }, mad.AttrMRA: func() mad.Message { return new(mad.MRA) },
		mad.AttrREJ: func() mad.Message { return new(mad.REJ) }, mad.AttrREP: func() mad.Message { return new(mad.REP) },
		mad.AttrRTU: func() mad.Message { return new(mad.RTU) }, mad.AttrDREQ: func() mad.Message { return new(mad.DREQ) },
		mad.AttrDREP: func() mad.Message { return new(mad.DREP) }, mad.AttrSIDRREQ: func() mad.Message { return new(mad.SIDRREQ) },
		mad.AttrSIDRREP: func() mad.Message { return new(mad.SIDRREP) }, mad.AttrLAP: func() mad.Message { return new(mad.LAP) },
		mad.AttrAPR: func() mad.Message { return new(mad.APR) },
	}
}
