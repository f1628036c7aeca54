package mad_test

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire/mad"
)

// The room for the user's data in each message, as IBA vol.1 12.6 and annex A11
// have it.
func TestRoomForPrivateData(t *testing.T) {
	want := map[mad.Attr]int{
		mad.AttrREQ: 92, mad.AttrMRA: 222, mad.AttrREJ: 148, mad.AttrREP: 196, mad.AttrRTU: 224, mad.AttrDREQ: 220, mad.AttrDREP: 224,
		mad.AttrSIDRREQ: 216, mad.AttrSIDRREP: 136, mad.AttrLAP: 168, mad.AttrAPR: 148,
	}
	b := make([]byte, mad.DataLen)
	for attr, n := range want {
		m := messages()[attr]()
		m.Decode(b)
		if got := len(privateOf(m)); got != n {
			t.Errorf("%v: %d bytes, want %d", attr, got, n)
		}
	}
	if mad.REQUserLen != 56 || mad.SIDRREQUserLen != 180 {
		t.Errorf("beside the IP header %d and %d bytes are left, want 56 and 180", mad.REQUserLen, mad.SIDRREQUserLen)
	}
}

func privateOf(m mad.Message) []byte {
	switch m := m.(type) {
	case *mad.REQ:
		return m.Private
	case *mad.MRA:
		return m.Private
	case *mad.REJ:
		return m.Private
	case *mad.REP:
		return m.Private
	case *mad.RTU:
		return m.Private
	case *mad.DREQ:
		return m.Private
	case *mad.DREP:
		return m.Private
	case *mad.SIDRREQ:
		return m.Private
	case *mad.SIDRREP:
		return m.Private
	case *mad.LAP:
		return m.Private
	case *mad.APR:
		return m.Private
	}
	return nil
}

// Any bytes decode; what was decoded survives encoding; and encoding is a
// function of the value alone: reserved bits come out as 0, whatever was in the
// buffer.
func FuzzMessages(f *testing.F) {
	for _, b := range recorded(f) {
		f.Add(b[mad.HeaderLen:])
	}
	f.Add(bytes.Repeat([]byte{0xFF}, mad.DataLen))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := make([]byte, mad.DataLen)
		copy(b, data)
		for attr, make1 := range messages() {
			m := make1()
			m.Decode(b)
			once, twice := bytes.Repeat([]byte{0xFF}, mad.DataLen), make([]byte, mad.DataLen)
			m.Encode(once)
			again := make1()
			again.Decode(once)
			again.Encode(twice)
			if diff := cmp.Diff(m, again); diff != "" {
				t.Errorf("%v changed (-first +second):\n%s", attr, diff)
			}
			if !bytes.Equal(once, twice) {
				t.Errorf("%v: encoding depends on the buffer", attr)
			}
			for i := range once {
				if extra := once[i] &^ b[i]; extra != 0 && !lengthByte(attr, i) {
					t.Errorf("%v: byte %d has bits %02x that were not there", attr, i, extra)
				}
			}
		}
		if h, err := mad.DecodeIP(b); err == nil {
			out := make([]byte, mad.IPLen)
			h.Encode(out)
			if again, err := mad.DecodeIP(out); err != nil || again.Src.Port() != h.Src.Port() || again.Dst.Unmap() != h.Dst.Unmap() {
				t.Errorf("IP header %+v came back as %+v, %v", h, again, err)
			}
		}
	})
}

// lengthByte reports whether the byte is a length that decoding limits.
func lengthByte(a mad.Attr, i int) bool {
	switch a {
	case mad.AttrREJ:
		return i == 9
	case mad.AttrSIDRREP:
		return i == 5
	case mad.AttrAPR:
		return i == 8
	}
	return false
}

// Each field is where IBA vol.1 12.6 has it: a value with one field set has
// those bits and no others. Offsets are of the data, in bits.
func TestFieldsOfREQ(t *testing.T) {
	for _, c := range []struct {
		name      string
		set       func(m *mad.REQ)
		bit, size int
	}{
		{"local communication ID", func(m *mad.REQ) { m.LocalID = 0xFFFFFFFF }, 0, 32},
		{"service ID", func(m *mad.REQ) { m.Service = 1<<64 - 1 }, 64, 64},
		{"local CA GUID", func(m *mad.REQ) { m.CAGUID = 1<<64 - 1 }, 128, 64},
		{"local Q_Key", func(m *mad.REQ) { m.QKey = 0xFFFFFFFF }, 224, 32},
		{"local QPN", func(m *mad.REQ) { m.QPN = ib.MaxQPN }, 256, 24},
		{"responder resources", func(m *mad.REQ) { m.ResponderResources = 0xFF }, 280, 8},
		{"local EECN", func(m *mad.REQ) { m.LocalEECN = 0xFFFFFF }, 288, 24},
		{"initiator depth", func(m *mad.REQ) { m.InitiatorDepth = 0xFF }, 312, 8},
		{"remote EECN", func(m *mad.REQ) { m.RemoteEECN = 0xFFFFFF }, 320, 24},
		{"remote CM response timeout", func(m *mad.REQ) { m.RemoteTimeoutExp = 31 }, 344, 5},
		{"transport service type", func(m *mad.REQ) { m.Transport = 3 }, 349, 2},
		{"end-to-end flow control", func(m *mad.REQ) { m.FlowControl = true }, 351, 1},
		{"starting PSN", func(m *mad.REQ) { m.StartingPSN = ib.PSNMask }, 352, 24},
		{"local CM response timeout", func(m *mad.REQ) { m.LocalTimeoutExp = 31 }, 376, 5},
		{"retry count", func(m *mad.REQ) { m.RetryCount = 7 }, 381, 3},
		{"partition key", func(m *mad.REQ) { m.PKey = 0xFFFF }, 384, 16},
		{"path packet payload MTU", func(m *mad.REQ) { m.MTU = 15 }, 400, 4},
		{"RDC exists", func(m *mad.REQ) { m.RDCExists = true }, 404, 1},
		{"RNR retry count", func(m *mad.REQ) { m.RNRRetryCount = 7 }, 405, 3},
		{"max CM retries", func(m *mad.REQ) { m.MaxCMRetries = 15 }, 408, 4},
		{"SRQ", func(m *mad.REQ) { m.SRQ = true }, 412, 1},
		{"extended transport type", func(m *mad.REQ) { m.ExtTransport = 7 }, 413, 3},
		{"primary local LID", func(m *mad.REQ) { m.Primary.LocalLID = 0xFFFF }, 416, 16},
		{"primary remote LID", func(m *mad.REQ) { m.Primary.RemoteLID = 0xFFFF }, 432, 16},
		{"primary flow label", func(m *mad.REQ) { m.Primary.FlowLabel = 0xFFFFF }, 704, 20},
		{"primary packet rate", func(m *mad.REQ) { m.Primary.Rate = 0x3F }, 730, 6},
		{"primary traffic class", func(m *mad.REQ) { m.Primary.TrafficClass = 0xFF }, 736, 8},
		{"primary hop limit", func(m *mad.REQ) { m.Primary.HopLimit = 0xFF }, 744, 8},
		{"primary SL", func(m *mad.REQ) { m.Primary.SL = 15 }, 752, 4},
		{"primary subnet local", func(m *mad.REQ) { m.Primary.SubnetLocal = true }, 756, 1},
		{"primary local ACK timeout", func(m *mad.REQ) { m.Primary.AckTimeoutExp = 31 }, 760, 5},
		{"alternate local LID", func(m *mad.REQ) { m.Alternate.LocalLID = 0xFFFF }, 768, 16},
		{"alternate local ACK timeout", func(m *mad.REQ) { m.Alternate.AckTimeoutExp = 31 }, 1112, 5},
		{"private data", func(m *mad.REQ) { m.Private = bytes.Repeat([]byte{0xFF}, 92) }, 1120, 736},
	} {
		var m mad.REQ
		c.set(&m)
		got := make([]byte, mad.DataLen)
		m.Encode(got)
		want := make([]byte, mad.DataLen)
		for i := c.bit; i < c.bit+c.size; i++ {
			want[i/8] |= 0x80 >> (i % 8)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestServiceIDs(t *testing.T) {
	// IBA annex A11.2: rping's port 7174 is 0x0000000001061c06.
	if got := mad.Service(mad.SpaceTCP, 7174); got != 0x0000000001061c06 {
		t.Errorf("service ID of TCP port 7174 is 0x%016x", uint64(got))
	}
	if got := mad.Service(mad.SpaceUDP, 7174); got != 0x0000000001111c06 {
		t.Errorf("service ID of UDP port 7174 is 0x%016x", uint64(got))
	}
	for _, id := range []mad.ServiceID{0, 0x1061c06 | 1<<32, 1 << 63} {
		if s, p, ok := id.Port(); ok {
			t.Errorf("0x%016x counts as %v port %d", uint64(id), s, p)
		}
	}
}

func TestIPHeader(t *testing.T) {
	for _, c := range []struct {
		src, dst string
		want     []byte // the first four bytes
	}{
		{"10.0.0.1:513", "10.0.0.2", []byte{0, 0x40, 2, 1}},
		{"[fd00::1]:65535", "fd00::2", []byte{0, 0x60, 0xFF, 0xFF}},
	} {
		h := mad.IP{Src: netip.MustParseAddrPort(c.src), Dst: netip.MustParseAddr(c.dst)}
		b := bytes.Repeat([]byte{0xA5}, mad.IPLen)
		h.Encode(b)
		if !slices.Equal(b[:4], c.want) {
			t.Errorf("%+v begins with %x, want %x", h, b[:4], c.want)
		}
		if got, err := mad.DecodeIP(b); err != nil || got != h {
			t.Errorf("%+v came back as %+v, %v", h, got, err)
		}
	}
	for _, b := range [][]byte{make([]byte, mad.IPLen), append([]byte{0x10, 0x40}, make([]byte, 34)...)} {
		if h, err := mad.DecodeIP(b); err == nil {
			t.Errorf("%x was taken for %+v", b[:2], h)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	b := make([]byte, mad.Len)
	var m mad.REQ
	if n := testing.AllocsPerRun(100, func() { mad.Put(b, 1, &m); m.Decode(b[mad.HeaderLen:]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
