package probe

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
)

func TestDatagramRoundTrip(t *testing.T) {
	want := datagram{
		kind: kindEcho, echo: true, tos: 0x6A, path: 3, seq: 0xFFFFFFFE, token: token{1, 2, 3, 15: 9},
		sentAt: 1 << 60, heard: -5, echoed: 7,
	}
	for size := frameLen; size < 200; size++ {
		b := make([]byte, size)
		if ok := want.encode(b); ok != (size%4 == 0) {
			t.Fatalf("%d bytes: encoded %v", size, ok)
		} else if !ok {
			continue
		}
		var got datagram
		if !got.decode(b) || got != want {
			t.Fatalf("%d bytes: %+v, want %+v", size, got, want)
		}
	}
	if want.encode(make([]byte, frameLen-4)) {
		t.Error("encoded into too few bytes")
	}
}

// What is changed on the way, and what may be changed.
func TestICRCOfProbe(t *testing.T) {
	for _, v := range [][2]string{{"10.0.0.1:49152", "10.0.0.2:4791"}, {"[fd00::1]:49152", "[fd00::2]:4791"}} {
		src, dst := netip.MustParseAddrPort(v[0]), netip.MustParseAddrPort(v[1])
		b := make([]byte, 128)
		d := datagram{kind: kindProbe, tos: 2}
		d.encode(b)
		seal(b, src, dst)
		f := flowOf(src, dst)
		if !f.Verify(0, true, b) {
			t.Errorf("%v: ICRC is wrong", src)
		}
		for i := range b {
			b[i] ^= 0x10
			if ok := f.Verify(0, true, b); ok != (i == 4) { // FECN and BECN are masked
				t.Errorf("%v: byte %d changed: right is %v", src, i, ok)
			}
			b[i] ^= 0x10
		}
		other := flowOf(netip.AddrPortFrom(src.Addr(), 49153), dst)
		if other.Verify(0, true, b) {
			t.Errorf("%v: right with another source port", src)
		}
	}
}

func TestRequestsAreChecked(t *testing.T) {
	send := func(n, size, ports, frame int) []byte {
		r := request{Op: "send", Ports: make([]uint16, ports)}
		for i := range r.Ports {
			r.Ports[i] = 50000
		}
		for range n {
			r.Probes = append(r.Probes, Probe{Size: size})
		}
		var b bytes.Buffer
		if err := writeFrame(&b, r, frame); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()[4:]
	}
	bad := map[string][]byte{
		"no JSON":          []byte("{"),
		"unknown":          []byte(`{"op":"rm"}`),
		"version":          []byte(`{"op":"hello","version":99}`),
		"negative report":  []byte(`{"op":"report","n":-1}`),
		"large report":     []byte(`{"op":"report","n":100000}`),
		"long wait":        []byte(`{"op":"report","n":1,"wait_ns":99999999999999}`),
		"no port":          send(1, 128, 0, 200),
		"many ports":       send(1, 128, 17, 900),
		"low port":         []byte(`{"op":"send","ports":[53],"probes":[]}`),
		"small packet":     send(1, 64, 1, 500),
		"large packet":     send(1, 9220, 1, 10000),
		"odd packet":       send(1, 130, 1, 500),
		"amplification":    send(10, 9000, 1, 89_999),
		"wrong path":       []byte(`{"op":"send","ports":[50000],"probes":[{"path":1,"size":128}]}` + strings.Repeat(" ", 200)),
		"long interval":    []byte(`{"op":"send","ports":[50000],"interval_ns":100000001}`),
		"interval below 0": []byte(`{"op":"send","ports":[50000],"interval_ns":-1}`),
	}
	for name, b := range bad {
		r, err := parseRequest(b)
		if err == nil {
			t.Errorf("%s: accepted %+v", name, r)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: not one line: %v", name, err)
		}
	}
	if _, err := parseRequest(send(10, 9000, 1, 90_000)); err != nil {
		t.Errorf("a frame as long as the packets asked for: %v", err)
	}
}

// What a listener says is made fit to be shown.
func TestResponsesAreChecked(t *testing.T) {
	b, err := json.Marshal(response{Host: &Host{Name: "a\x1b[31m" + strings.Repeat("x", 1000), SocketWhy: "line\nline\u202e"}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := parseResponse(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Host.Name) > maxText || strings.ContainsAny(r.Host.Name+r.Host.SocketWhy, "\x1b\n\u202e") {
		t.Errorf("%q %q", r.Host.Name, r.Host.SocketWhy)
	}
	for _, bad := range []string{
		`{"sightings":[{"from":"x"}]}`, `{"sightings":[{"size":-1}]}`, `{"witnesses":-1}`, `{"host":{"mtu":-4}}`, `[]`, `{"err":"no"}`,
		`{"sent":[` + strings.TrimSuffix(strings.Repeat("{},", maxBatch+1), ",") + `]}`,
	} {
		if _, err := parseResponse([]byte(bad)); err == nil {
			t.Errorf("%.60s: accepted", bad)
		}
	}
}

func TestFramesAreBounded(t *testing.T) {
	if _, err := readFrame(strings.NewReader("GET / HTTP/1.1\r\n\r\n")); err == nil || !strings.Contains(err.Error(), "control channel") {
		t.Errorf("HTTP: %v", err)
	}
	if _, err := readFrame(strings.NewReader("\x00\x0F\xFF\xFFshort")); err == nil {
		t.Error("a cut frame was accepted")
	}
	if err := writeFrame(&bytes.Buffer{}, response{}, maxFrame+1); err == nil {
		t.Error("a frame too long was written")
	}
}

func FuzzDatagram(f *testing.F) {
	b := make([]byte, 128)
	d := datagram{kind: kindProbe, echo: true}
	d.encode(b)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var d datagram
		if !d.decode(b) {
			return
		}
		again := make([]byte, len(b))
		var e datagram
		if !d.encode(again) || !e.decode(again) || e != d {
			t.Errorf("%+v became %+v", d, e)
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"op":"hello","version":1}`))
	f.Add([]byte(`{"op":"send","ports":[50000],"probes":[{"seq":1,"size":128}]}                                                                              `))
	f.Add([]byte(`{"op":"report","first":4294967295,"n":1024,"want":3,"wait_ns":1000}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRequest(b)
		if err != nil {
			return
		}
		total := 0
		for _, p := range r.Probes {
			total += p.Size
		}
		if r.Op == "send" && total > len(b) {
			t.Errorf("%d bytes asked for with %d", total, len(b))
		}
	})
}

func FuzzResponse(f *testing.F) {
	f.Add([]byte(`{"token":"00","host":{"name":"x","devices":[{"name":"mlx5_0","hardware":true}]}}`))
	f.Add([]byte(`{"sent":[{"seq":1,"at":2,"port":3,"err":"EPERM"}],"sightings":[{"seq":1,"from":"10.0.0.1","size":128}],"notices":[{"what":"x","from":"10.0.0.1"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseResponse(b)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\x1b") {
				t.Errorf("%q", err)
			}
			return
		}
		_, _ = parseToken(r.Token)
	})
}
