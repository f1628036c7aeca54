//go:build linux

package tree

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/listing"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
	"github.com/verbena-rdma/verbena/diag/source/nldev"
	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// Attributes that only the hosts below have.
const (
	attrCapFlags, attrFirmware, attrNodeGUID, attrSysImageGUID, attrSubnet, attrLID, attrSMLID, attrLMC                = 4, 5, 6, 7, 8, 9, 10, 11
	attrPortState, attrPhysState, attrNodeType, attrSummary, attrSummaryEntry, attrSummaryName, attrCurrent            = 12, 13, 14, 15, 16, 17, 18
	attrQP, attrQPEntry, attrLQPN, attrRQPN, attrRQPSN, attrSQPSN, attrPathMig, attrType, attrState                    = 19, 20, 21, 22, 23, 24, 25, 26, 27
	attrPID, attrKernName, attrCMID, attrCMIDEntry, attrPS, attrSource, attrDest, attrCQ, attrCQEntry                  = 28, 29, 30, 31, 32, 33, 34, 35, 36
	attrCQE, attrUsers, attrPollCtx, attrMR, attrMREntry, attrRKey, attrLKey, attrIOVA, attrMRLen, attrPD, attrPDEntry = 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47
	attrLocalKey, attrNetIndex, attrNetName, attrPDN, attrCQN, attrMRN, attrCMIDN, attrCTXN, attrNetns, attrProtocol   = 48, 50, 51, 60, 61, 62, 63, 64, 66, 67
	attrStatMask, attrCntn, attrHW, attrHWEntry, attrHWName, attrHWValue, attrDIM                                      = 76, 79, 80, 81, 82, 83, 84
	attrCTX, attrCTXEntry, attrSRQ, attrSRQEntry, attrSRQN, attrMinRange, attrMaxRange, attrCopyOnFork, attrHWOn       = 86, 87, 88, 89, 90, 91, 92, 93, 95
)

func comm(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(b), "\n")
}

// user and kern own objects: this process, and a part of the kernel.
func user() []byte            { return u32(attrPID, uint32(os.Getpid())) }
func kern(name string) []byte { return str(attrKernName, name) }

func device(name string, index uint32, nodeType byte, firmware string, guid, caps uint64, protocol string) kernelDevice {
	fw := str(attrFirmware, firmware)
	if firmware == "" { // as the kernel, which then has no such attribute
		fw = nil
	}
	return kernelDevice{
		summary: summary("pd", 0, "cq", 0, "qp", 0, "cm_id", 0, "mr", 0, "ctx", 0, "srq", 0),
		name:    name, index: index, objects: map[uint16][]byte{}, stat: map[uint32][]byte{}, status: map[uint32][]byte{}, mode: map[uint32][]byte{},
		attr: join(u64(attrCapFlags, caps), fw, u64(attrNodeGUID, guid), u64(attrSysImageGUID, guid), u8(attrNodeType, nodeType),
			u8(attrDIM, byte(index&1)), str(attrProtocol, protocol)),
	}
}

// ib and ethernet are the attributes of a port.
func ib(caps uint64, prefix uint64, lid, smLID uint32, lmc, state, phys byte) []byte {
	return join(u64(attrCapFlags, caps), u64(attrSubnet, prefix), u32(attrLID, lid), u32(attrSMLID, smLID), u8(attrLMC, lmc), u8(attrPortState, state), u8(attrPhysState, phys))
}

func ethernet(state, phys byte, index uint32, netdev string) []byte {
	b := join(u8(attrPortState, state), u8(attrPhysState, phys))
	if netdev != "" {
		b = join(b, u32(attrNetIndex, index), str(attrNetName, netdev))
	}
	return b
}

func summary(pairs ...any) []byte {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		b = append(b, attr(attrSummaryEntry, join(str(attrSummaryName, pairs[i].(string)), u64(attrCurrent, uint64(pairs[i+1].(int)))))...)
	}
	return attr(attrSummary, b)
}

func counters(pairs ...any) []byte {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		b = append(b, attr(attrHWEntry, join(str(attrHWName, pairs[i].(string)), u64(attrHWValue, uint64(pairs[i+1].(int)))))...)
	}
	return attr(attrHW, b)
}

func table(table, entry uint16, rows ...[]byte) []byte {
	var b []byte
	for _, r := range rows {
		b = append(b, attr(entry, r)...)
	}
	return attr(table, b)
}

func sockaddr(addr string) []byte {
	a := netip.MustParseAddrPort(addr)
	b := make([]byte, 128)
	binary.BigEndian.PutUint16(b[2:], a.Port())
	if a.Addr().Is4() {
		binary.NativeEndian.PutUint16(b, 2)
		x := a.Addr().As4()
		copy(b[4:], x[:])
	} else {
		binary.NativeEndian.PutUint16(b, 10)
		x := a.Addr().As16()
		copy(b[8:], x[:])
	}
	return b
}

// qpsOf are queue pairs of every type in every state, on ports 0 (none yet), 1 and 2.
func qpsOf() (rows [][]byte) {
	n := uint32(100)
	for typ := range byte(12) {
		for state := range byte(8) {
			if typ > 4 && state > 1 && typ != 11 {
				continue
			}
			n++
			b := join(u32(attrLQPN, n), u32(attrSQPSN, n*7))
			kind := typ
			if typ == 11 {
				kind = 0xff
			}
			if typ == 2 || typ == 3 {
				b = join(b, u32(attrRQPN, n+1000), u32(attrRQPSN, 0xffffff-n), u8(attrPathMig, state%4))
			}
			b = join(b, u8(attrType, kind), u8(attrState, state))
			if state > 0 {
				b = join(u32(attrPort, uint32(1+state%2)), b)
			}
			if typ < 2 {
				b = join(b, kern("ib_core"))
			} else {
				b = join(b, u32(attrPDN, uint32(typ)), user())
			}
			rows = append(rows, b)
		}
	}
	return rows
}

func fleet() *kernel {
	k := &kernel{system: join(u8(attrNetns, 1), u8(attrCopyOnFork, 1))}
	mlx := device("mlx5_0", 0, 1, "22.38.1900", 0x946dae0300907832, 0x1425321c36, "roce")
	mlx.ports = [][]byte{ethernet(4, 5, 4, "ens1f0np0")}
	mlx.summary = summary("pd", 4, "cq", 4, "qp", 1, "cm_id", 1, "mr", 2, "ctx", 1, "srq", 2)
	mlx.stat[1] = counters("rx_write_requests", 2402134794, "rx_read_requests", 0, "out_of_buffer", 1, "np_cnp_sent", 12, "rp_cnp_handled", 0)
	on := func(name string, v byte) []byte {
		return attr(attrHWEntry, join(str(attrHWName, name), u8(attrHWOn, v)))
	}
	mlx.status[1] = attr(attrHW, join(attr(attrHWEntry, str(attrHWName, "rx_write_requests")), on("cc_rx_ce_pkts", 1), on("cc_rx_cnp_pkts", 0), on("cc_tx_cnp_pkts", 1)))
	mlx.mode[1] = join(u32(mode, 1), u32(attrStatMask, 3))
	lqpns := func(numbers ...uint32) []byte {
		var b []byte
		for _, n := range numbers {
			b = append(b, attr(attrQPEntry, u32(attrLQPN, n))...)
		}
		return attr(attrQP, b)
	}
	mlx.bound = []bound{
		{1, join(u32(attrPort, 1), u32(attrCntn, 5), user(), lqpns(178), counters("rx_write_requests", 7, "out_of_sequence", 0))},
		{1, join(u32(attrPort, 1), u32(attrCntn, 6), u8(attrType, 2), kern("nvme-rdma"), lqpns(179, 180, 181), counters("rx_write_requests", 1<<40, "out_of_sequence", 3))},
		{1, join(u32(attrPort, 1), u32(attrCntn, 9), u8(attrType, 4), user(), lqpns(), counters("rx_write_requests", 0))},
	}
	down := device("mlx5_1", 1, 1, "22.38.1900", 0x946dae0300907833, 0, "roce")
	down.ports = [][]byte{ethernet(1, 3, 5, "ens1f1np1")}
	ibDev := device("mlx5_2", 2, 1, "20.37.1014", 0xb8599f0300123456, 1<<63|1<<16|1<<22|3, "ib")
	ibDev.ports = [][]byte{ib(0xa651e848, 0xfe80000000000000, 13, 2, 0, 4, 5)}
	ibDev.stat[1] = counters("rx_icrc_encapsulated", 3)
	two := device("mlx4_0", 7, 1, "2.42.5000", 0x0002c90300f17d40, 0x3425327c36, "ib")
	two.ports = [][]byte{ib(0x0251486a, 0xfec0000000000001, 65535, 49151, 3, 2, 6), ethernet(5, 7, 9, "eth2"), ib(0, 0, 0, 0, 0, 3, 2)}
	two.stat[1], two.stat[2] = counters("a", 1), counters("b", 2, "odd name", 3, "with,comma", 4)
	two.bound = []bound{{2, join(u32(attrPort, 2), u32(attrCntn, 1), user(), lqpns(64), counters("b", 1))}}
	two.objects = map[uint16][]byte{
		cmdQP: table(attrQP, attrQPEntry, qpsOf()...),
		cmdCQ: table(attrCQ, attrCQEntry, join(u32(attrCQN, 1), u32(attrCQE, 4095), u64(attrUsers, 2), u8(attrPollCtx, 2), u8(attrDIM, 1), kern("ib_core")),
			join(u32(attrCQN, 2), u32(attrCQE, 255), u64(attrUsers, 1), u32(attrCTXN, 1), user()), join(u32(attrCQN, 3), u32(attrCQE, 1), u64(attrUsers, 0), u8(attrPollCtx, 9), u32(attrCTXN, 2), user())),
		cmdMR: table(attrMR, attrMREntry, join(u32(attrMRN, 1), u32(attrRKey, 0x1234), u32(attrLKey, 0x1234), u64(attrIOVA, 0x7f001000), u64(attrMRLen, 1<<33), u32(attrPDN, 3), user()),
			join(u32(attrMRN, 2), u64(attrMRLen, 4096), u32(attrPDN, 3), kern("iser"))),
		cmdPD: table(attrPD, attrPDEntry, join(u32(attrPDN, 1), u32(attrLocalKey, 0x8000), u64(attrUsers, 4), kern("mlx4_ib")), join(u32(attrPDN, 3), u64(attrUsers, 1), u32(attrCTXN, 1), user())),
		cmdCMID: table(attrCMID, attrCMIDEntry,
			join(u32(attrCMIDN, 0), u32(attrPort, 1), u32(attrLQPN, 130), u8(attrType, 2), u8(attrState, 5), u32(attrPS, 0x106), user(), attr(attrSource, sockaddr("192.168.1.5:7174")), attr(attrDest, sockaddr("192.168.1.6:50123"))),
			join(u32(attrCMIDN, 1), u32(attrPort, 2), u8(attrState, 8), u32(attrPS, 0x106), kern("iser"), attr(attrSource, sockaddr("0.0.0.0:3260")), attr(attrDest, sockaddr("0.0.0.0:0"))),
			join(u32(attrCMIDN, 2), u32(attrPort, 2), u8(attrType, 4), u8(attrState, 7), u32(attrPS, 0x111), user(), attr(attrSource, sockaddr("[fe80::1]:18")), attr(attrDest, sockaddr("[2001:db8::2:0:1]:65535"))),
			join(u32(attrCMIDN, 3), u32(attrPort, 1), u8(attrState, 0), u32(attrPS, 0x2), user()), join(u32(attrCMIDN, 4), u32(attrPort, 3), u8(attrState, 10), u32(attrPS, 0x2), user()), join(u32(attrCMIDN, 5), u32(attrPort, 1), u8(attrState, 30), u32(attrPS, 0x7), user())),
		cmdCTX: table(attrCTX, attrCTXEntry, join(u32(attrCTXN, 1), user()), join(u32(attrCTXN, 2), user())),
	}
	two.summary = summary("pd", 2, "cq", 3, "qp", 50, "cm_id", 6, "mr", 2, "ctx", 2, "srq", 0)
	iw := device("iwp177s0f1", 9, 4, "1.71", 0x6e0f47fffe3a1b21, 1<<21, "iw")
	iw.ports = [][]byte{ethernet(4, 5, 6, "ens1f1")}
	siw := device("siw0", 10, 4, "", 0x5254007700110000, 1<<15, "iw")
	siw.ports = [][]byte{ethernet(0, 0, 2, "eth0")}
	rxe := device("rxe0", 11, 1, "", 0x505400fffe770011, 0x1223c76, "roce")
	rxe.ports = [][]byte{ethernet(4, 5, 2, "eth0")}
	hfi := device("hfi1_0", 12, 1, "1.27.0", 0x001175010171_4f2c, 0x3, "ib")
	hfi.ports = [][]byte{ib(0x00490020, 0xfe80000000000000, 3, 1, 0, 9, 9)}
	for phys := byte(8); phys < 13; phys++ {
		hfi.ports = append(hfi.ports, ib(1<<64-1-uint64(phys&1), 0, 1<<24, 0, 7, 5, phys))
	}
	usnic := device("usnic_0", 13, 6, "4.1", 1, 1<<64-1, "usnic")
	usnic.ports = [][]byte{ethernet(4, 5, 0, "")}
	complete := func(d *kernelDevice) {
		for i := range d.ports {
			p := uint32(i + 1)
			if d.stat[p] == nil {
				d.stat[p] = counters("lifespan", 10)
			}
			if d.status[p] == nil {
				d.status[p] = attr(attrHW, attr(attrHWEntry, str(attrHWName, "lifespan")))
			}
			if d.mode[p] == nil {
				d.mode[p] = join(u32(mode, 2-p%2), u32(attrStatMask, p/2)) // by hand, or automatic by type, by process, by both
			}
		}
	}
	k.devices = []kernelDevice{mlx, down, ibDev, two, iw, siw, rxe, hfi, usnic, device("bare", 14, 77, "", 0, 0, "")}
	for i := range k.devices {
		complete(&k.devices[i])
	}
	return k
}

// readFrom reads what a client answers, as from a live host without sysfs.
func readFrom(c *nldev.Client, devices []kernelDevice) (*snapshot.Snapshot, error) {
	empty, err := os.MkdirTemp("", "empty-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(empty)
	got := func(v any, err error) func() (any, error) { return func() (any, error) { return v, err } }
	extra := map[string]func() (any, error){}
	put := func(query string, v any, err error) { extra[query] = got(v, err) }
	system, err := c.System()
	put(source.QuerySubsystem, system, err)
	all, err := c.Devices()
	put(source.QueryDevices, all, err)
	sums, err := c.Summary()
	put(source.QuerySummary, sums, err)
	links := map[string][]snapshot.Port{}
	for _, d := range devices {
		i := int(d.index)
		if links[d.name], err = c.Ports(i); err != nil {
			return nil, err
		}
		stats, modes := map[int]snapshot.Counters{}, map[int]snapshot.StatMode{}
		for _, p := range links[d.name] {
			if stats[p.Number], err = c.Statistics(i, p.Number); err != nil {
				return nil, err
			}
			if modes[p.Number], err = c.StatMode(i, p.Number); err != nil {
				return nil, err
			}
		}
		name := func(query string) string { return fmt.Sprintf(query, d.name) }
		put(name(source.QueryStatistics), stats, nil)
		put(name(source.QueryStatModes), modes, nil)
		qps, err := c.QPs(i)
		put(name(source.QueryQPs), qps, err)
		cqs, err := c.CQs(i)
		put(name(source.QueryCQs), cqs, err)
		mrs, err := c.MRs(i)
		put(name(source.QueryMRs), mrs, err)
		pds, err := c.PDs(i)
		put(name(source.QueryPDs), pds, err)
		ids, err := c.CMIDs(i)
		put(name(source.QueryCMIDs), ids, err)
		srqs, err := c.SRQs(i)
		put(name(source.QuerySRQs), srqs, err)
		ctx, err := c.Contexts(i)
		put(name(source.QueryContexts), ctx, err)
		bound, err := c.BoundCounters(i)
		put(name(source.QueryBound), bound, err)
	}
	put(source.QueryLinks, links, nil)
	live, err := source.NewLive(source.LiveConfig{SysfsRoot: empty, Extra: extra})
	if err != nil {
		return nil, err
	}
	defer live.Close()
	return read.Host(live, read.Options{NoSystem: true, NoNetdevs: true, NoApp: true, NoAttr: true}), nil
}

// rdmaLines are command lines without options.
var rdmaLines = []string{
	"", "help", "dev", "dev show", "dev show mlx5_2", "dev show nosuch", "link", "link show", "link show mlx5_2/1", "link show mlx4_0/2", "link show mlx4_0/4", "link show mlx4_0", "link show nosuch/1",
	"link show nosuch", "res", "res show", "res show mlx4_0", "res show bare", "res show nosuch", "system", "system show",
	"res show qp", "res show cq", "res show mr", "res show pd", "res show cm_id", "res show ctx", "res show qp link mlx4_0", "res show qp link mlx4_0/1", "res show qp link mlx4_0/2", "res show qp link mlx4_0/-",
	"res show qp link mlx5_0/1", "res show qp link mlx4_0/9", "res show qp type UD", "res show qp type rc,uc state rts,sqd", "res show qp type DRIVER", "res show qp type XRC_TGT", "res show qp state ERR",
	"res show qp path-mig-state ARMED", "res show qp rqpn 1120-1130", "res show qp lqpn 101-103,110", "res show qp pdn 3", "res show qp sq-psn 707", "res show cm_id link mlx4_0/2", "res show cm_id state LISTEN",
	"res show cm_id ps IPoIB", "res show cm_id src-port 3260", "res show cm_id dst-port 65535", "res show cm_id lqpn 130", "res show cm_id qp-type UD",
	"res show cq cqn 2", "res show cq dev mlx4_0 users 2", "res show cq poll-ctx WORKQUEUE", "res show mr mrlen 4096", "res show mr pdn 3 mrn 1", "res show pd users 4", "res show pd dev mlx5_0", "res show ctx ctxn 2",
	"statistic", "statistic show", "statistic show link mlx4_0", "statistic show link mlx4_0/2", "statistic show link mlx4_0/3", "statistic show link mlx5_0/1", "statistic show link nosuch", "statistic mode", "statistic mode link mlx5_0",
	"statistic mode link mlx5_0/1", "statistic mode supported", "statistic mode supported link mlx5_0/1", "statistic mode supported link rxe0/1", "statistic qp mode", "statistic qp mode link mlx5_0/1", "statistic qp mode link mlx4_0",
	"statistic qp", "statistic qp show", "statistic qp show link mlx5_0", "statistic qp show link mlx5_0/1", "statistic qp show link mlx4_0/2", "statistic qp show link mlx4_0/1", "statistic qp show link mlx5_0/1 cntn 5",
	"statistic qp show link mlx5_0 cntn 6-9", "statistic qp show link mlx5_0 lqpn 180", "statistic qp show link mlx5_0 lqpn 179-181", "statistic qp show link mlx5_0 lqpn 178", "statistic qp show link mlx5_0 qp-type RC",
	"statistic qp show link mlx5_0 pid 1", "statistic qp show link mlx5_0 foo 1", "statistic qp show link mlx5_0 cntn x", "statistic qp show link mlx5_0 cntn", "statistic qp show cntn 5", "statistic qp show foo", "statistic mr",
}

// Debian's rdma and ours ask the same kernel that the test plays: devices of every kind, ports of both link layers,
// queue pairs of every type in every state, counters that are bound.
func TestRDMA(t *testing.T) {
	judge.Need(t, "rdma-core")
	k := fleet()
	s, err := k.host()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Devices) != len(k.devices) || len(s.Problems) > 0 {
		t.Errorf("%d devices, problems %v", len(s.Devices), s.Problems)
	}
	library := filepath.Join(t.TempDir(), "netlink.so")
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, "testdata/netlink.c").CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	t.Setenv("VERBENA_NETLINK", k.serve(t))
	printed := 0
	for _, options := range []string{"", "-d ", "-j ", "-jp ", "-jd ", "-p ", "-pd "} {
		for _, l := range rdmaLines {
			line := options + l
			want := run(t, "env LD_PRELOAD="+library+" rdma "+line)
			printed += len(want.out)
			same(t, "rdma "+line, want, listed(listing.RDMA(s, strings.Fields(line))))
		}
	}
	if printed < 100_000 {
		t.Errorf("Debian's rdma printed only %d bytes", printed)
	}
}
