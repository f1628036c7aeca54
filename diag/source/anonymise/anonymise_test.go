package anonymise

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func testWords() *words {
	w := &words{mapper: newMapper([]byte("key")), hosts: map[string]string{}, guids: map[string]bool{}, real: map[string]string{}}
	w.addHost("gpu07.example.org")
	w.guids["946dae0300907832"] = true
	return w
}

func common(a, b []byte) int {
	for i := range 8 * len(a) {
		if (a[i/8]^b[i/8])>>(7-i%8)&1 != 0 {
			return i
		}
	}
	return 8 * len(a)
}

// Two addresses share as long a prefix after as before, and their class.
func TestPrefixesStay(t *testing.T) {
	w := testWords()
	rapid.Check(t, func(t *rapid.T) {
		six := rapid.Bool().Draw(t, "six")
		n := 4
		if six {
			n = 16
		}
		x := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "x")
		keep := rapid.IntRange(0, 8*n).Draw(t, "shared bits")
		y := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "y")
		for i := range keep {
			bit := byte(1) << (7 - i%8)
			y[i/8] = y[i/8]&^bit | x[i/8]&bit
		}
		a, _ := netip.AddrFromSlice(x)
		b, _ := netip.AddrFromSlice(y)
		p, q := w.addr(a), w.addr(b)
		if (a == b) != (p == q) {
			t.Fatalf("%v %v became %v %v", a, b, p, q)
		}
		for _, c := range [][2]netip.Addr{{a, p}, {b, q}} {
			if c[0].IsLinkLocalUnicast() != c[1].IsLinkLocalUnicast() || c[0].IsLoopback() != c[1].IsLoopback() || c[0].IsMulticast() != c[1].IsMulticast() {
				t.Fatalf("%v became %v, another class", c[0], c[1])
			}
		}
		if a.IsLinkLocalUnicast() || b.IsLinkLocalUnicast() || a.IsMulticast() || b.IsMulticast() || a.IsLoopback() || b.IsLoopback() || a.IsUnspecified() || b.IsUnspecified() {
			return
		}
		limit := 8 * n
		if six {
			limit = 64 // below it identifiers made of MAC addresses follow those
		}
		if !six && (x[0] == 0 || x[0] >= 240 || y[0] == 0 || y[0] >= 240) {
			return
		}
		if got, want := min(common(p.AsSlice(), q.AsSlice()), limit), min(common(x, y), limit); got != want {
			t.Fatalf("%v %v share %d bits; %v %v share %d", a, b, want, p, q, got)
		}
	})
}

func TestPrivateAddressesStayPrivate(t *testing.T) {
	w := testWords()
	for _, c := range []string{"10.1.2.3", "172.20.1.1", "192.168.1.1", "fd00::1", "fc12::5"} {
		a := netip.MustParseAddr(c)
		if b := w.addr(a); !b.IsPrivate() || a == b {
			t.Errorf("%v became %v", a, b)
		}
	}
}

// A MAC address and everything that is made of it agree after as before.
func TestMACRelations(t *testing.T) {
	w := testWords()
	rapid.Check(t, func(t *rapid.T) {
		mac := rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "mac")
		mac[0] &^= 1
		eui := []byte{mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]}
		mlx := []byte{mac[0], mac[1], mac[2], 0x03, 0x00, mac[3], mac[4], mac[5]}
		var ll [16]byte
		ll[0], ll[1] = 0xfe, 0x80
		copy(ll[8:], eui)
		global := ll
		global[0], global[1] = 0x20, 0x01

		m := w.mac(mac)
		if m[0] != mac[0] || m[1] != mac[1] || m[2] != mac[2] {
			t.Fatalf("vendor of %x became %x", mac, m)
		}
		wantEUI := []byte{m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}
		wantMlx := []byte{m[0], m[1], m[2], 0x03, 0x00, m[3], m[4], m[5]}
		for what, pair := range map[string][2][]byte{
			"GUID":       {w.guid(eui), wantEUI},
			"mlx5 GUID":  {w.guid(mlx), wantMlx},
			"link-local": {w.addr(netip.AddrFrom16(ll)).AsSlice()[8:], wantEUI},
			"global":     {w.addr(netip.AddrFrom16(global)).AsSlice()[8:], wantEUI},
		} {
			if hex.EncodeToString(pair[0]) != hex.EncodeToString(pair[1]) {
				t.Fatalf("%s of %x is %x, want %x", what, mac, pair[0], pair[1])
			}
		}
	})
}

func TestText(t *testing.T) {
	w := testWords()
	v4 := w.addr(netip.MustParseAddr("10.0.2.9"))
	same := func(in string) string { return in }
	for _, c := range []struct {
		in   string
		want func(string) string
	}{
		{"22.38.1900", same},
		{"0000:3b:00.0", same},
		{"12:34:56.789", same},
		{"100 Gb/sec (4X EDR)", same},
		{"mlx5_0/1 lqpn 17", same},
		{"00:00:00:00:00:00", same},
		{"ff:ff:ff:ff:ff:ff", same},
		{"0000:0000:0000:0000:0000:0000:0000:0000", same},
		{"fe80:0000:0000:0000:0000:0000:0000:0000", same},
		{"127.0.0.1:4791 [::1]", same},
		{"255.255.255.0", same},
		{"10.0.2.9", func(string) string { return v4.String() }},
		{"peer 10.0.2.9:4791.", func(string) string { return "peer " + v4.String() + ":4791." }},
		{"peer 10.0.2.9<1234>", func(string) string { return "peer " + v4.String() + "<1234>" }},
		{"::ffff:10.0.2.9", func(string) string { return "::ffff:" + v4.String() }},
		{"0000:0000:0000:0000:0000:ffff:0a00:0209", func(string) string { return netip.AddrFrom16(v4.As16()).StringExpanded() }},
		{"gpu07:123:456 [0] NCCL INFO", func(string) string { return w.host("gpu07") + ":123:456 [0] NCCL INFO" }},
		{"on gpu07.example.org, gpu070", func(string) string { return "on " + w.host("gpu07") + ", gpu070" }},
		{"/home/alice/job", func(string) string { return "/home/user/job" }},
	} {
		if got := w.text(c.in, true); got != c.want(c.in) {
			t.Errorf("%q became %q, want %q", c.in, got, c.want(c.in))
		}
	}
	for _, secret := range []string{"94:6d:ae:90:78:32", "enx946dae907832", "rocex946dae0300907832", "0x946dae0300907832", "946d:ae03:0090:7832", "fe80::966d:aeff:fe90:7832", "10.9.8.7"} {
		if got := w.text(secret, true); got == secret || len(got) == 0 {
			t.Errorf("%q stays", secret)
		}
	}
}

// The network's own address stays one.
func TestNetworkAddresses(t *testing.T) {
	w := testWords()
	for _, c := range []string{"10.20.30.0/24", "10.20.0.0/16", "fd00:1:2:3::/64"} {
		p, err := netip.ParsePrefix(w.text(c, true))
		if err != nil || p != p.Masked() || p.String() == c {
			t.Errorf("%s became %v (%v)", c, p, err)
		}
	}
	net := netip.MustParsePrefix(w.text("10.20.30.0/24", true))
	if a := w.addr(netip.MustParseAddr("10.20.30.77")); !net.Contains(a) {
		t.Errorf("%v is not in %v", a, net)
	}
}

func TestJSON(t *testing.T) {
	w := testWords()
	w.addHost("dev") // a name that is also a key
	got := string(w.json([]byte(`{"dev":"eth0","fw_ver":"231.0.154.0","x":["10.9.8.7\n","dev","a\"b"],"enx946dae907832":[]}`)))
	for _, want := range []string{`{"dev":"eth0"`, `"fw_ver":"231.0.154.0"`, `\n"`, `"a\"b"`, w.host("dev")} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	for _, no := range []string{"10.9.8.7", "946dae907832"} {
		if strings.Contains(got, no) {
			t.Errorf("%s still has %s", got, no)
		}
	}
}
