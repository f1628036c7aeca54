//go:build linux

package interop

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// cableFields are what tshark says about each frame. One that a frame does not
// have is empty.
var cableFields = []string{
	"eth.dst", "eth.src", "eth.type", "vlan.priority", "vlan.id", "vlan.etype",
	"ip.version", "ip.hdr_len", "ip.dsfield", "ip.len", "ip.flags.df", "ip.ttl", "ip.proto", "ip.checksum.status", "ip.src", "ip.dst",
	"ipv6.version", "ipv6.tclass", "ipv6.flow", "ipv6.plen", "ipv6.nxt", "ipv6.hlim", "ipv6.src", "ipv6.dst",
	"udp.srcport", "udp.dstport", "udp.length", "udp.checksum",
	"infiniband.grh.ipver", "infiniband.grh.tclass", "infiniband.grh.flowlabel", "infiniband.grh.paylen", "infiniband.grh.nxthdr",
	"infiniband.grh.hoplmt", "infiniband.grh.sgid", "infiniband.grh.dgid",
	"infiniband.bth.opcode", "infiniband.bth.se", "infiniband.bth.m", "infiniband.bth.padcnt", "infiniband.bth.tver", "infiniband.bth.p_key",
	"infiniband.bth.destqp", "infiniband.bth.a", "infiniband.bth.psn",
	"infiniband.reth.va", "infiniband.reth.r_key", "infiniband.reth.dmalen", "infiniband.aeth.syndrome.opcode", "infiniband.aeth.msn",
	"infiniband.invariant.crc", "_ws.malformed",
}

// cableFrame is a frame as it came out of a cable, and what tshark must find in
// it.
type cableFrame struct {
	what string
	data []byte
	want map[string]string
}

// cableCase is one form of frames.
type cableCase struct {
	v    ib.GIDType
	v4   bool
	tag  bool
	vlan uint16
}

func (c cableCase) String() string {
	return fmt.Sprintf("%v IPv4=%v VLAN=%d tag=%v", c.v, c.v4, c.vlan, c.tag)
}

const cableMessage = 5001 // bytes: FIRST, three MIDDLEs of 1,024, LAST of 905 and 3 of pad

// Both versions, both families, with and without a tag: data arrives, and
// tshark finds in every frame, the acknowledgements too, what was meant.
func TestEthernetCable(t *testing.T) {
	judge.Need(t, "tshark")
	sa, sb := wireCable(t)
	macs := [2]string{macOf(t, sa, "v0"), macOf(t, sb, "v1")}
	var all []cableFrame
	for _, c := range []cableCase{
		{ib.GIDTypeRoCEv1, true, false, 0},
		{ib.GIDTypeRoCEv1, false, true, 7},
		{ib.GIDTypeRoCEv1, true, true, 0},
		{ib.GIDTypeRoCEv2, true, false, 0},
		{ib.GIDTypeRoCEv2, true, true, 7},
		{ib.GIDTypeRoCEv2, false, false, 0},
		{ib.GIDTypeRoCEv2, false, true, 4094},
	} {
		t.Run(c.String(), func(t *testing.T) {
			x, y := netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("10.9.0.2")
			if !c.v4 {
				x, y = netip.MustParseAddr("2001:db8:9::1"), netip.MustParseAddr("2001:db8:9::2")
			}
			a, b := openWire(t, sa, "v0", x, c.vlan, c.tag), openWire(t, sb, "v1", y, c.vlan, c.tag)
			p, q := connectWire(t, a, b, c.v, 5)
			for i := range cableMessage {
				a.mr.Bytes()[i] = byte(i*7 + 1)
			}
			a.write(p, b, cableMessage)
			if wc := p.await(t); wc.Status != ib.Success {
				t.Fatalf("%+v; %v", wc, b.dev.Stats())
			}
			if string(a.mr.Bytes()[:cableMessage]) != string(b.mr.Bytes()[:cableMessage]) {
				t.Error("other bytes arrived")
			}
			_, _ = a.dev.Close(), b.dev.Close()

			for i, f := range b.tap.frames {
				w := c.want(macs[0], macs[1], x, y, f)
				n := 1024
				op, ackReq, pad := 7, "0", 0
				switch i {
				case 0:
					op = 6
					w["infiniband.reth.va"], w["infiniband.reth.r_key"] = fmt.Sprint(b.mr.Addr()), fmt.Sprint(uint32(b.mr.RKey()))
					w["infiniband.reth.dmalen"] = fmt.Sprint(cableMessage)
					n += 16
				case 4:
					op, ackReq, pad, n = 8, "1", 3, 905
				}
				c.bth(w, op, pad, q.Num(), ackReq, 7+i)
				c.lengths(w, n+pad)
				all = append(all, cableFrame{fmt.Sprintf("%v, request %d", c, i), f, w})
			}
			if len(b.tap.frames) != 5 || len(a.tap.frames) != 1 {
				t.Errorf("%d requests and %d acknowledgements, want 5 and 1", len(b.tap.frames), len(a.tap.frames))
			}
			for _, f := range a.tap.frames {
				w := c.want(macs[1], macs[0], y, x, f)
				c.bth(w, 17, 0, p.Num(), "0", 11)
				w["infiniband.aeth.syndrome.opcode"], w["infiniband.aeth.msn"] = "0", "1"
				c.lengths(w, 4)
				all = append(all, cableFrame{fmt.Sprintf("%v, ACK", c), f, w})
			}
		})
	}
	judgeFrames(t, all)
}

// want is what every frame of the case has. None is ECN-capable: DCQCN is off.
func (c cableCase) want(srcMAC, dstMAC string, src, dst netip.Addr, f []byte) map[string]string {
	w := map[string]string{"eth.src": srcMAC, "eth.dst": dstMAC, "infiniband.invariant.crc": fmt.Sprint(binary.BigEndian.Uint32(f[len(f)-4:]))}
	typ := 0x8915
	switch {
	case c.v == ib.GIDTypeRoCEv1:
		w["infiniband.grh.ipver"], w["infiniband.grh.tclass"], w["infiniband.grh.flowlabel"] = "6", "0", "0"
		w["infiniband.grh.nxthdr"], w["infiniband.grh.hoplmt"] = "27", "64"
		w["infiniband.grh.sgid"], w["infiniband.grh.dgid"] = gidText(src), gidText(dst)
	case c.v4:
		typ = 0x0800
		w["ip.version"], w["ip.hdr_len"], w["ip.dsfield"], w["ip.flags.df"], w["ip.ttl"], w["ip.proto"] = "4", "20", "0", "1", "64", "17"
		w["ip.checksum.status"], w["ip.src"], w["ip.dst"] = "1", src.String(), dst.String()
	default:
		typ = 0x86DD
		w["ipv6.version"], w["ipv6.tclass"], w["ipv6.flow"], w["ipv6.nxt"], w["ipv6.hlim"] = "6", "0", "0", "17", "64"
		w["ip.version"] = "6"
		w["ipv6.src"], w["ipv6.dst"] = src.String(), dst.String()
	}
	if c.v == ib.GIDTypeRoCEv2 {
		w["udp.dstport"], w["udp.checksum"] = "4791", "0"
	}
	w["eth.type"] = fmt.Sprint(typ)
	if c.tag {
		w["eth.type"], w["vlan.etype"], w["vlan.priority"], w["vlan.id"] = fmt.Sprint(0x8100), fmt.Sprint(typ), "5", fmt.Sprint(c.vlan)
	}
	return w
}

func gidText(a netip.Addr) string { return netip.AddrFrom16(a.As16()).String() }

// bth adds what the BTH says.
func (c cableCase) bth(w map[string]string, op, pad int, dest ib.QPN, ackReq string, psn int) {
	w["infiniband.bth.opcode"], w["infiniband.bth.padcnt"], w["infiniband.bth.destqp"] = fmt.Sprint(op), fmt.Sprint(pad), fmt.Sprint(uint32(dest))
	w["infiniband.bth.a"], w["infiniband.bth.psn"] = ackReq, fmt.Sprint(psn)
	w["infiniband.bth.se"], w["infiniband.bth.tver"], w["infiniband.bth.p_key"] = "0", "0", fmt.Sprint(0xFFFF)
}

// lengths adds the lengths of a packet with n bytes between BTH and ICRC.
func (c cableCase) lengths(w map[string]string, n int) {
	n += 12 + 4
	switch {
	case c.v == ib.GIDTypeRoCEv1:
		w["infiniband.grh.paylen"] = fmt.Sprint(n)
		return
	case c.v4:
		w["ip.len"] = fmt.Sprint(20 + 8 + n)
	default:
		w["ipv6.plen"] = fmt.Sprint(8 + n)
	}
	w["udp.length"] = fmt.Sprint(8 + n)
}

// judgeFrames asks tshark about all frames at once.
func judgeFrames(t *testing.T, all []cableFrame) {
	t.Helper()
	le := binary.LittleEndian
	file := le.AppendUint32(nil, 0xA1B2C3D4)
	file = append(file, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	file = le.AppendUint32(le.AppendUint32(file, 65535), 1) // Ethernet
	for _, f := range all {
		file = append(file, make([]byte, 8)...)
		file = le.AppendUint32(le.AppendUint32(file, uint32(len(f.data))), uint32(len(f.data)))
		file = append(file, f.data...)
	}
	name := filepath.Join(t.TempDir(), "ours.pcap")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"-r", name, "-o", "ip.check_checksum:TRUE", "--disable-heuristic", "rpcrdma_infiniband", "--disable-heuristic", "mellanox_eoib",
		"--disable-heuristic", "eth_over_ib", "-T", "fields", "-E", "separator=|", "-E", "occurrence=f",
	}
	for _, f := range cableFields {
		args = append(args, "-e", f)
	}
	out, err := exec.Command("tshark", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(lines) != len(all) {
		t.Fatalf("tshark reads %d of %d frames", len(lines), len(all))
	}
	for i, l := range lines {
		cols := strings.Split(l, "|")
		for k, field := range cableFields {
			got, want := plain(cols[k]), plain(all[i].want[field])
			switch field {
			case "infiniband.bth.m": // either will do
				continue
			case "udp.srcport":
				if p, err := strconv.Atoi(got); err == nil && p >= 0xC000 || got == "" && cols[k+1] == "" {
					continue
				}
			}
			if got != want {
				t.Errorf("%s: %s is %q, want %q", all[i].what, field, got, want)
			}
		}
	}
}

// plain is one form of what tshark and we write differently: numbers, truth,
// addresses.
func plain(s string) string {
	s = strings.ToLower(s)
	if v, err := strconv.ParseUint(s, 0, 64); err == nil {
		return fmt.Sprint(v)
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.AddrFrom16(a.As16()).String()
	}
	switch s {
	case "true", "good":
		return "1"
	case "false":
		return "0"
	}
	return s
}
