package listing

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Devices is ibv_devices.
func Devices(s *snapshot.Snapshot) []byte {
	b := []byte("    device          \t   node GUID\n    ------          \t----------------\n")
	for i := range s.Devices {
		d := &s.Devices[i]
		b = fmt.Appendf(b, "    %-16s\t%s\n", d.Name, bareGUID(d.NodeGUID.Or("")))
	}
	return b
}

// bareGUID is a GUID of 16 digits without colons, zeros where there is none.
func bareGUID(guid string) string {
	h := strings.ReplaceAll(guid, ":", "")
	if len(h) != 16 {
		return "0000000000000000"
	}
	return h
}

// DevInfoOptions are those of ibv_devinfo.
type DevInfoOptions struct {
	Device  string // -d; empty for all
	Port    int    // -i; 0 for all
	List    bool   // -l
	Verbose bool   // -v
}

// DevInfo is ibv_devinfo. A device whose attributes are not known is printed with
// those that sysfs and the interface tell.
func DevInfo(s *snapshot.Snapshot, o DevInfoOptions) ([]byte, error) {
	var b []byte
	if o.List {
		plural := "s"
		if len(s.Devices) == 1 {
			plural = ""
		}
		b = fmt.Appendf(b, "%d HCA%s found:\n", len(s.Devices), plural)
		for i := range s.Devices {
			b = fmt.Appendf(b, "\t%s\n", s.Devices[i].Name)
		}
		return append(b, '\n'), nil
	}
	if o.Device != "" && s.Device(o.Device) == nil {
		return nil, fail(255, "IB device '%s' wasn't found", o.Device)
	}
	if len(s.Devices) == 0 {
		return nil, fail(255, "No IB devices found")
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		if o.Device != "" && d.Name != o.Device {
			continue
		}
		if o.Port != 0 && port(d, o.Port) == nil {
			return b, fail(4, "Invalid port requested for device")
		}
		b = devInfo(b, s, d, o)
	}
	return b, nil
}

func devInfo(b []byte, s *snapshot.Snapshot, d *snapshot.Device, o DevInfoOptions) []byte {
	p := func(format string, args ...any) { b = fmt.Appendf(b, format, args...) }
	a := d.Attr.Or(nil)
	p("hca_id:\t%s\n", d.Name)
	transport := "InfiniBand (0)"
	if d.NodeType.Or(1) == 4 {
		transport = "iWARP (1)"
	}
	p("\ttransport:\t\t\t%s\n", transport)
	if fw := firmware(d); fw != "" {
		p("\tfw_ver:\t\t\t\t%s\n", fw)
	}
	p("\tnode_guid:\t\t\t%s\n", d.NodeGUID.Or("0000:0000:0000:0000"))
	p("\tsys_image_guid:\t\t\t%s\n", d.SysImageGUID.Or("0000:0000:0000:0000"))
	vendor, part, hw := identity(d)
	p("\tvendor_id:\t\t\t0x%04x\n", vendor)
	p("\tvendor_part_id:\t\t\t%d\n", part)
	p("\thw_ver:\t\t\t\t0x%X\n", hw)
	if id := d.BoardID.Or(""); id != "" {
		p("\tboard_id:\t\t\t%s\n", id)
	}
	p("\tphys_port_cnt:\t\t\t%d\n", max(len(d.Ports), int(a["phys_port_cnt"])))
	if o.Verbose {
		b = appendAttr(b, a)
	}
	for i := range d.Ports {
		if o.Port == 0 || d.Ports[i].Number == o.Port {
			b = devInfoPort(b, s, &d.Ports[i], o.Verbose)
		}
	}
	return append(b, '\n')
}

// firmware is the version as sysfs has it; rdma_rxe has only the number.
func firmware(d *snapshot.Device) string {
	if fw := d.Firmware.Or(""); fw != "" {
		return fw
	}
	v, ok := d.Attr.Or(nil)["fw_ver"]
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", v>>32&0xffff, v>>16&0xffff, v&0xffff)
}

// identity are the numbers of the vendor, from the device or from its PCI function.
func identity(d *snapshot.Device) (vendor, part, hw uint64) {
	a := d.Attr.Or(nil)
	if _, ok := a["vendor_id"]; ok {
		return a["vendor_id"], a["vendor_part_id"], a["hw_ver"]
	}
	if d.PCI != nil {
		vendor, _ = strconv.ParseUint(d.PCI.Vendor.Or(""), 0, 32)
		part, _ = strconv.ParseUint(d.PCI.Device.Or(""), 0, 32)
	}
	if vendor == 0x15b3 {
		vendor = 0x02c9 // Mellanox' devices name its OUI
	}
	hw, _ = strconv.ParseUint(d.HWRev.Or(""), 0, 32)
	return vendor, part, hw
}

func devInfoPort(b []byte, s *snapshot.Snapshot, q *snapshot.Port, verbose bool) []byte {
	p := func(format string, args ...any) { b = fmt.Appendf(b, format, args...) }
	state := q.State.Or(0)
	p("\t\tport:\t%d\n", q.Number)
	p("\t\t\tstate:\t\t\t%s (%d)\n", verbsState(state), state)
	maxMTU, active := mtus(s, q)
	p("\t\t\tmax_mtu:\t\t%s\n", mtuText(maxMTU))
	p("\t\t\tactive_mtu:\t\t%s\n", mtuText(active))
	p("\t\t\tsm_lid:\t\t\t%d\n\t\t\tport_lid:\t\t%d\n\t\t\tport_lmc:\t\t0x%02x\n", q.SMLID.Or(0), q.LID.Or(0), q.LMC.Or(0))
	p("\t\t\tlink_layer:\t\t%s\n", q.LinkLayer.Or("Unspecified"))
	if !verbose {
		return b
	}
	a := q.Attr
	p("\t\t\tmax_msg_sz:\t\t0x%x\n", a["max_msg_sz"])
	caps := a["port_cap_flags"]
	if _, ok := a["port_cap_flags"]; !ok {
		caps = uint64(q.CapMask.Or(0))
	}
	p("\t\t\tport_cap_flags:\t\t0x%08x\n\t\t\tport_cap_flags2:\t0x%04x\n", caps, a["port_cap_flags2"])
	p("\t\t\tmax_vl_num:\t\t%s (%d)\n", lanes(a["max_vl_num"]), a["max_vl_num"])
	p("\t\t\tbad_pkey_cntr:\t\t0x%x\n\t\t\tqkey_viol_cntr:\t\t0x%x\n\t\t\tsm_sl:\t\t\t%d\n", a["bad_pkey_cntr"], a["qkey_viol_cntr"], q.SMSL.Or(0))
	pkeys := a["pkey_tbl_len"]
	if pkeys == 0 {
		pkeys = uint64(len(q.PKeys))
	}
	p("\t\t\tpkey_tbl_len:\t\t%d\n\t\t\tgid_tbl_len:\t\t%d\n", pkeys, q.GIDSlots.Or(len(q.GIDs)))
	p("\t\t\tsubnet_timeout:\t\t%d\n\t\t\tinit_type_reply:\t%d\n", a["subnet_timeout"], a["init_type_reply"])
	p("\t\t\tactive_width:\t\t%sX (%d)\n\t\t\tactive_speed:\t\t%s (%d)\n", widthWord(q.Width.Or(0)), q.Width.Or(0), speedWord(q.Speed.Or(0)), q.Speed.Or(0))
	if q.LinkLayer.Or("") != "" {
		p("\t\t\tphys_state:\t\t%s (%d)\n", verbsPhys(q.PhysState.Or(0)), q.PhysState.Or(0))
	}
	for _, g := range q.GIDs {
		b = gidLine(b, q, g)
	}
	return b
}

// gidLine is a row of the GID table; those whose lower half is empty are left out.
func gidLine(b []byte, q *snapshot.Port, g snapshot.GID) []byte {
	addr, err := netip.ParseAddr(g.GID)
	if err != nil {
		return b
	}
	if raw := addr.As16(); [8]byte(raw[8:]) == [8]byte{} {
		return b
	}
	text, kind := g.GID, ""
	if q.LinkLayer.Or("") == "Ethernet" {
		switch g.Type.Or("") {
		case "RoCE v2":
			text, kind = GIDText(g.GID), ", RoCE v2"
		case "IB/RoCE v1":
			kind = ", RoCE v1"
		}
	}
	return fmt.Appendf(b, "\t\t\tGID[%3d]:\t\t%s%s\n", g.Index, text, kind)
}

// GIDText writes a GID of 39 characters as inet_ntop does an IPv6 address: an
// IPv4-mapped one with its dots. What is no GID stays.
func GIDText(gid string) string {
	addr, err := netip.ParseAddr(gid)
	if err != nil {
		return gid
	}
	if addr.Is4In6() {
		return "::ffff:" + addr.Unmap().String()
	}
	return addr.String()
}

// mtus are the codes of the largest and of the active path MTU. Where the device does
// not tell, an Ethernet port has what fits the interface's MTU beside the headers.
func mtus(s *snapshot.Snapshot, q *snapshot.Port) (largest, active int) {
	largest, active = mtuCode(q.MaxMTU.Or(0)), mtuCode(q.ActiveMTU.Or(0))
	if largest == 0 && q.LinkLayer.Or("") != "" {
		largest = 5
	}
	if active != 0 {
		return largest, active
	}
	if q.LinkLayer.Or("") != "Ethernet" {
		return largest, active
	}
	n := s.Netdev(q.Netdev.Or(""))
	if n == nil {
		return largest, active
	}
	const headers = 40 + 8 + 12 + 28 + 4 + 28 // GRH, UDP, BTH, atomic and extended transport headers, ICRC
	for code := largest; code >= 1; code-- {
		if n.MTU.Or(0) >= 128<<code+headers {
			return largest, code
		}
	}
	return largest, 1
}

func mtuText(code int) string {
	if code < 1 || code > 5 {
		return fmt.Sprintf("invalid MTU (%d)", code)
	}
	return fmt.Sprintf("%d (%d)", 128<<code, code)
}

func verbsState(i int) string {
	switch i {
	case 1:
		return "PORT_DOWN"
	case 2:
		return "PORT_INIT"
	case 3:
		return "PORT_ARMED"
	case 4:
		return "PORT_ACTIVE"
	}
	return "invalid state"
}

func verbsPhys(i int) string {
	switch i {
	case 1:
		return "SLEEP"
	case 2:
		return "POLLING"
	case 3:
		return "DISABLED"
	case 4:
		return "PORT_CONFIGURATION TRAINNING" // so spelled
	case 5:
		return "LINK_UP"
	case 6:
		return "LINK_ERROR_RECOVERY"
	case 7:
		return "PHY TEST"
	}
	return "invalid physical state"
}

func lanes(code uint64) string {
	switch code {
	case 1:
		return "1"
	case 2:
		return "2"
	case 3:
		return "4"
	case 4:
		return "8"
	case 5:
		return "15"
	}
	return "invalid value"
}
