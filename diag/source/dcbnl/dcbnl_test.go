package dcbnl

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// attr makes a netlink attribute: length, type, content, padding to four.
func attr(typ uint16, content ...byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(content)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, content...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// answer is an IEEE_GET answer with the structures as uapi linux/dcbnl.h lays them out.
func answer() []byte {
	pfc := make([]byte, 136)
	pfc[0], pfc[1], pfc[2] = 8, 1<<3|1<<4, 1
	binary.NativeEndian.PutUint16(pfc[4:], 4096)
	binary.NativeEndian.PutUint64(pfc[8+8*3:], 77)
	binary.NativeEndian.PutUint64(pfc[72+8*4:], 88)

	ets := make([]byte, 59)
	ets[0], ets[1] = 1, 8
	ets[3], ets[4] = 40, 60 // tc_tx_bw
	ets[11] = 99            // tc_rx_bw, not asked for
	ets[19], ets[20], ets[21], ets[22] = 2, 2, 0, 255
	ets[27+3] = 1 // priority 3 in class 1

	buf := make([]byte, 44)
	buf[3] = 1
	binary.NativeEndian.PutUint32(buf[8+4:], 130944)
	binary.NativeEndian.PutUint32(buf[40:], 262016)

	rate := make([]byte, 64)
	binary.NativeEndian.PutUint64(rate[8:], 25_000_000)

	app := func(sel, prio byte, proto uint16) []byte {
		return attr(1, append([]byte{sel, prio}, binary.NativeEndian.AppendUint16(nil, proto)...)...)
	}
	apps := slices.Concat(app(5, 3, 26), app(1, 2, 0), app(3, 3, 4791), app(255, 6, 6))
	ieee := slices.Concat(attr(1, ets...), attr(2, pfc...), attr(3, apps...), attr(7, rate...), attr(10, buf...), attr(11, attr(1, 5)...))
	return slices.Concat([]byte{0, 21, 0, 0}, attr(1, 'e', 't', 'h', '0', 0), attr(13|1<<15, ieee...), attr(14, 0x01|0x08))
}

func TestParse(t *testing.T) {
	var dcb snapshot.DCB
	if err := parse(answer(), &dcb); err != nil {
		t.Fatal(err)
	}
	p, _ := dcb.PFC.Get()
	if p.Cap != 8 || !p.MBC || p.Delay != 4096 || p.Requests[3] != 77 || p.Indications[4] != 88 || p.Enabled != [8]bool{3: true, 4: true} {
		t.Errorf("PFC %+v", p)
	}
	e, _ := dcb.ETS.Get()
	if !e.Willing || e.Cap != 8 || e.TCBW != [8]int{40, 60} || e.TSA[0] != "ets" || e.TSA[2] != "strict" || e.TSA[3] != "vendor" || e.PrioTC[3] != 1 {
		t.Errorf("ETS %+v", e)
	}
	b, _ := dcb.Buffer.Get()
	if b.PrioBuffer[3] != 1 || b.Size[1] != 130944 || b.Total != 262016 {
		t.Errorf("buffers %+v", b)
	}
	if r, _ := dcb.MaxRate.Get(); r[1] != 25_000_000 {
		t.Errorf("rates %v", r)
	}
	apps, _ := dcb.Apps.Get()
	want := []snapshot.DCBApp{{Selector: "dscp", Priority: 3, Protocol: 26}, {Selector: "default", Priority: 2}, {Selector: "dgram-port", Priority: 3, Protocol: 4791}, {Selector: "pcp", Priority: 6, Protocol: 6}}
	if !slices.Equal(apps, want) {
		t.Errorf("applications %+v", apps)
	}
	if dcb.Trust.Or("") != "dscp" {
		t.Errorf("trust %v", dcb.Trust)
	}
	if x, _ := dcb.DCBX.Get(); !slices.Equal(x, []string{"host", "ieee"}) {
		t.Errorf("DCBX %v", x)
	}
}

func TestRequest(t *testing.T) {
	got := request(cmdIEEEGet, "eth0")
	want := slices.Concat([]byte{0, 21, 0, 0}, attr(1, 'e', 't', 'h', '0', 0))
	if !slices.Equal(got, want) {
		t.Errorf("request %x, want %x", got, want)
	}
}

// A cut answer is an error, never a panic.
func FuzzParse(f *testing.F) {
	whole := answer()
	for i := 0; i <= len(whole); i += 7 {
		f.Add(whole[:i])
	}
	f.Fuzz(func(_ *testing.T, b []byte) {
		var dcb snapshot.DCB
		_ = parse(b, &dcb)
	})
}
