package mad_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/mad"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// tshark reads in each message what we meant. Of MRA, SIDR REQ and REP, LAP and APR
// its dissector shows the kind alone; flow label and packet rate of a REQ it
// shows 8 bits beside their places.
func TestTsharkReadsWhatWeEncode(t *testing.T) {
	judge.Need(t, "tshark")
	path := mad.Path{
		LocalLID: 0x1111, RemoteLID: 0x2222, LocalGID: gid4("10.0.0.1"), RemoteGID: gid4("10.0.0.2"), FlowLabel: 0xABCDE,
		Rate: 0x16, TrafficClass: 0x68, HopLimit: 63, SL: 3, SubnetLocal: true, AckTimeoutExp: 19,
	}
	req := &mad.REQ{
		LocalID: 0x01020304, Service: mad.Service(mad.SpaceTCP, 7174), CAGUID: 0x1122334455667788, QKey: 0x11, QPN: 0x123456,
		ResponderResources: 5, InitiatorDepth: 6, LocalEECN: 7, RemoteEECN: 8, RemoteTimeoutExp: 20, LocalTimeoutExp: 21,
		Transport: mad.TransportUC, FlowControl: true, StartingPSN: 0x654321, RetryCount: 6, RNRRetryCount: 5, PKey: 0xFFFF,
		MTU: ib.MTU1024, RDCExists: true, MaxCMRetries: 14, SRQ: true, ExtTransport: 5, Primary: path, Alternate: path,
	}
	ip := mad.IP{Src: netip.MustParseAddrPort("10.0.0.1:44963"), Dst: netip.MustParseAddr("10.0.0.2")}
	req.Private = make([]byte, mad.IPLen)
	ip.Encode(req.Private)
	cases := []sample{
		{req, "req=0x01020304 req.serviceid.prefix=0000000001 req.serviceid.protocol=0x06 req.serviceid.dport=0x1c06 " +
			"req.localcaguid=0x1122334455667788 req.localqkey=0x00000011 req.localqpn=0x123456 req.responderres=0x05 " +
			"req.localeecn=0x000007 req.initdepth=0x06 req.remoteeecn=0x000008 req.remoteresptout=0x14 " +
			"req.transpsvctype=0x01 req.e2eflowctrl=0x01 req.startpsn=0x654321 req.localresptout=0x15 req.retrcount=0x06 " +
			"req.pkey=0xffff req.pppmtu=0x03 req.rdcexist=0x01 req.rnrretrcount=0x05 req.maxcmretr=0x0e req.srq=0x01 " +
			"req.ext_transport=0x05 req.prim_locallid=4369 req.prim_remotelid=8738 req.prim_localgid_ipv4=10.0.0.1 " +
			"req.prim_remotegid_ipv4=10.0.0.2 " +
			"req.prim_tfcclass=0x68 req.prim_hoplim=0x3f req.prim_sl=0x03 req.prim_subnetlocal=0x01 req.prim_localacktout=0x13 " +
			"req.alt_locallid=4369 req.alt_hoplim=0x3f req.alt_localacktout=0x13 req.ip_cm.majv=0x00 " +
			"req.ip_cm.ipv=0x04 req.ip_cm.sport=0xafa3 req.ip_cm.sip4=10.0.0.1 req.ip_cm.dip4=10.0.0.2"},
		{&mad.MRA{LocalID: 1, RemoteID: 2, About: mad.WhichREP, ServiceTimeoutExp: 24}, ""},
		{
			&mad.REJ{LocalID: 1, RemoteID: 2, About: mad.WhichREP, Reason: mad.RejInvalidMTU, ARI: []byte{3}},
			"rej.localcommid=0x00000001 rej.remotecommid=0x00000002 rej.reason=0x001a rej.rejinfolen=0x01 rej.msgrej=0x01",
		},
		{
			&mad.REP{
				LocalID: 1, RemoteID: 2, QKey: 3, QPN: 0x123456, EECN: 5, StartingPSN: 0x654321, ResponderResources: 7, InitiatorDepth: 8,
				TargetAckDelayExp: 15, Failover: 1, FlowControl: true, RNRRetryCount: 6, SRQ: true, CAGUID: 0x1122334455667788,
			},
			"rep=0x00000001 rep.remotecommid=0x00000002 rep.localqkey=0x00000003 rep.localqpn=0x123456 rep.localeecn=0x000005 " +
				"rep.startpsn=0x654321 rep.respres=0x07 rep.initdepth=0x08 rep.tgtackdelay=0x0f rep.failoveracc=0x01 " +
				"rep.e2eflowctrl=0x01 rep.rnrretrcount=0x06 rep.srq=0x01 rep.localcaguid=0x1122334455667788",
		},
		{&mad.RTU{LocalID: 0x01020304, RemoteID: 0x05060708}, "rtu.localcommid=0x01020304 rtu.remotecommid=0x05060708"},
		{&mad.DREQ{LocalID: 1, RemoteID: 2, RemoteQPN: 0x123456}, "dreq.localcommid=0x00000001 req.remoteqpneecn=0x123456"},
		{&mad.DREP{LocalID: 0x01020304, RemoteID: 2}, "drsp.localcommid=0x01020304 drsp.remotecommid=0x00000002"},
		{&mad.SIDRREQ{}, ""},
		{&mad.SIDRREP{}, ""},
		{&mad.LAP{}, ""},
		{&mad.APR{}, ""},
	}
	name := filepath.Join(t.TempDir(), "ours.pcap")
	if err := os.WriteFile(name, pcapOf(cases), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-r", name, "-T", "fields", "-E", "separator=|", "-e", "infiniband.mad.attributeid", "-e", "_ws.malformed"}
	var fields []string
	for _, c := range cases {
		for pair := range strings.FieldsSeq(c.want) {
			f, _, _ := strings.Cut(pair, "=")
			fields = append(fields, f)
			args = append(args, "-e", "infiniband.cm."+f)
		}
	}
	out, err := exec.Command("tshark", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(lines) != len(cases) {
		t.Fatalf("%d frames read, %d written", len(lines), len(cases))
	}
	for i, c := range cases {
		cols := strings.Split(lines[i], "|")
		if want := fmt.Sprintf("0x%04x", uint16(c.m.Attr())); cols[0] != want || cols[1] != "" {
			t.Errorf("%v: attribute %s, malformed %q", c.m.Attr(), cols[0], cols[1])
		}
		for pair := range strings.FieldsSeq(c.want) {
			f, want, _ := strings.Cut(pair, "=")
			for k := range fields {
				if fields[k] == f && cols[k+2] != want {
					t.Errorf("%v: %s is %s, want %s", c.m.Attr(), f, cols[k+2], want)
				}
			}
		}
	}
}

// sample is a message, and fields of tshark's with their values.
type sample struct {
	m    mad.Message
	want string
}

// pcapOf makes a capture of one RoCEv2 frame for each message.
func pcapOf(cases []sample) []byte {
	le := binary.LittleEndian
	file := le.AppendUint32(nil, 0xA1B2C3D4)
	file = append(file, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	file = le.AppendUint32(file, 65535)
	file = le.AppendUint32(file, 1) // Ethernet
	e := roce.Envelope{
		Kind: roce.V2IPv4, Src: gid4("10.0.0.1"), Dst: gid4("10.0.0.2"), TTL: 64, DF: true, SrcPort: 0xC000, DstPort: roce.Port,
	}
	for _, c := range cases {
		payload := make([]byte, mad.Len)
		mad.Put(payload, 0x1234, c.m)
		p := wire.Packet{PKey: ib.DefaultPKey, DestQPN: ib.QPGSI, DETH: wire.DETH{QKey: 0x80010000, SrcQPN: ib.QPGSI}, Payload: payload}
		p.SetOp(wire.UDSendOnly)
		b := make([]byte, e.FrameLen(&p))
		e.Encode(b, &p)
		file = append(file, make([]byte, 8)...)
		file = le.AppendUint32(file, uint32(len(b)))
		file = le.AppendUint32(file, uint32(len(b)))
		file = append(file, b...)
	}
	return file
}
