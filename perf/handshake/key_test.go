package handshake

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
)

var sampleKey = Key{OutReads: 128, QPN: 0x11, PSN: 0x123456, RKey: 0x0badcafe, Addr: 0x7f0012345678, GID: ib.GID{10: 0xff, 11: 0xff, 12: 10, 13: 77, 15: 11}}

func TestKeyText(t *testing.T) {
	got := AppendKey(nil, sampleKey, true)
	want := "0000:0080:000011:123456:0badcafe:00007f0012345678:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:4d:00:0b:00000000:\x00"
	if string(got) != want {
		t.Errorf("key with GID\n got %q\nwant %q", got, want)
	}
	if len(got) != KeyGIDLen {
		t.Errorf("%d bytes, want %d", len(got), KeyGIDLen)
	}
	got = AppendKey(nil, sampleKey, false)
	want = "0000:0080:000011:123456:0badcafe:00007f0012345678:00000000\x00"
	if string(got) != want || len(got) != KeyLen {
		t.Errorf("key without GID\n got %q\nwant %q", got, want)
	}
}

func TestKeyRoundTrip(t *testing.T) {
	for _, gid := range []bool{true, false} {
		k := sampleKey
		k.SRQN, k.LID = 7, 9
		if !gid {
			k.GID = ib.GID{}
		}
		got, err := ParseKey(AppendKey(nil, k, gid))
		if err != nil || got != k {
			t.Errorf("gid %v: got %+v, %v; want %+v", gid, got, err, k)
		}
	}
}

func TestKeyRefused(t *testing.T) {
	good := string(AppendKey(nil, sampleKey, true))
	for name, s := range map[string]string{
		"short":         good[:50],
		"not hex":       strings.Replace(good, "0badcafe", "0badcafg", 1),
		"QPN too large": strings.Replace(good, "000011:", "100000011:", 1)[:KeyGIDLen],
		"zeros":         string(make([]byte, KeyGIDLen)),
		"colons":        strings.Repeat(":", KeyGIDLen),
		"minus":         strings.Replace(good, ":000011:", ":-00011:", 1),
	} {
		_, err := ParseKey([]byte(s))
		if !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v, want a format error", name, err)
		} else if strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("%s: the error is not one printable line: %q", name, err)
		}
	}
}

func TestVersionBlock(t *testing.T) {
	plain := Version{Text: ProtocolVersion}.Append(nil)
	if want := append([]byte("6.06"), make([]byte, 12)...); !bytes.Equal(plain, want) {
		t.Errorf("plain block %q", plain)
	}
	ours := Version{Text: ProtocolVersion, Ours: 1}.Append(nil)
	if len(ours) != VersionLen || !bytes.HasPrefix(ours, []byte("6.06\x00")) {
		t.Errorf("marked block %q must look like the plain one up to its zero", ours)
	}
	for _, b := range [][]byte{plain, ours} {
		v, err := ParseVersion(b)
		if err != nil || v.Text != ProtocolVersion || (v.Ours == 1) != bytes.Equal(b, ours) {
			t.Errorf("%q: %+v, %v", b, v, err)
		}
	}
	for _, bad := range []string{"", "GET / HTTP/1.1\r\n", "5.60", "NaN", "-6", "SSH-2.0-OpenSSH_"} {
		b := make([]byte, VersionLen)
		copy(b, bad)
		if _, err := ParseVersion(b); err == nil {
			t.Errorf("version %q was accepted", bad)
		}
	}
}

func TestReportSanitised(t *testing.T) {
	var r Report
	r.setFields([5]uint64{65536, 1000, math.Float64bits(math.NaN()), math.Float64bits(math.Inf(1)), math.Float64bits(-1)})
	if (r != Report{Size: 65536, Iters: 1000}) {
		t.Errorf("%+v: what is no rate must read as not measured", r)
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add(AppendKey(nil, sampleKey, true))
	f.Add(AppendKey(nil, sampleKey, false))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := ParseKey(b)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("%q: %v", b, err)
			}
			return
		}
		again, err := ParseKey(AppendKey(nil, k, len(b) == KeyGIDLen))
		if err != nil || again != k {
			t.Fatalf("%q: %+v became %+v, %v", b, k, again, err)
		}
	})
}

func FuzzParseAddress(f *testing.F) {
	f.Add(AppendAddress(nil, Address{QPN: 0x11, PSN: 5, GID: sampleKey.GID}))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := ParseAddress(b)
		if err != nil {
			return
		}
		again, err := ParseAddress(AppendAddress(nil, a))
		if err != nil || again != a {
			t.Fatalf("%q: %+v became %+v, %v", b, a, again, err)
		}
	})
}
