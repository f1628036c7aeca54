package read

import (
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// pci reads the function that a device link names; nil if it names none. A recording
// may have the files and no link: then the address is not known.
func (r *reader) pci(link string) *snapshot.PCI {
	addr := r.link(link)
	if addr == "" && !quiet(r, link+"/current_link_speed", text).IsKnown() || addr != "" && !pciAddress(addr) {
		return nil
	}
	dir := link + "/"
	p := &snapshot.PCI{Address: addr}
	p.NUMANode = value(r, dir+"numa_node", number)
	p.LinkWidth = quiet(r, dir+"current_link_width", number)
	p.MaxLinkWidth = quiet(r, dir+"max_link_width", number)
	if !r.opt.Counters {
		p.Vendor = value(r, dir+"vendor", text)
		p.Device = value(r, dir+"device", text)
		p.LocalCPUs = value(r, dir+"local_cpulist", text)
		p.LinkSpeed = quiet(r, dir+"current_link_speed", pciSpeed)
		p.MaxLinkSpeed = quiet(r, dir+"max_link_speed", pciSpeed)
		p.Virtual = snapshot.Known(r.link(dir+"physfn") != "")
	}
	for _, kind := range []string{"correctable", "nonfatal", "fatal"} {
		p.AER = r.aer(p.AER, dir+"aer_dev_"+kind, kind)
	}
	return p
}

// pciSpeed reads the speed of a PCI link, "16.0 GT/s PCIe"; the kernel says "Unknown"
// of a link that it cannot tell.
func pciSpeed(s string) (string, error) {
	head, _, ok := strings.Cut(s, " GT/s")
	if _, err := strconv.ParseFloat(head, 64); !ok || err != nil || len(s) > 40 {
		return "", odd(s, "a speed in GT/s")
	}
	return s, nil
}

// pciAddress reports whether a name is domain:bus:slot.function.
func pciAddress(s string) bool {
	head, fn, ok := strings.Cut(s, ".")
	parts := strings.Split(head, ":")
	if !ok || len(parts) != 3 {
		return false
	}
	for _, p := range append(parts, fn) {
		if _, err := strconv.ParseUint(p, 16, 32); err != nil {
			return false
		}
	}
	return true
}

// aer reads a table of error counters by name; only those that are not 0 are kept,
// and the sum.
func (r *reader) aer(to map[string]uint64, name, kind string) map[string]uint64 {
	b, reason, ok := r.file(name)
	if !ok {
		if reason != "" && reason != "permission denied" {
			r.problem(name, reason)
		}
		return to
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 2 || len(to) > 100 {
			continue
		}
		n, err := unsigned(clean(f[1]))
		if err != nil {
			r.problem(name, f[0]+": "+err.Error())
			continue
		}
		if n == 0 && !strings.HasPrefix(f[0], "TOTAL") {
			continue
		}
		if to == nil {
			to = map[string]uint64{}
		}
		to[kind+"."+clean(f[0])] = n
	}
	return to
}

// vendors make network functions that can be RDMA devices.
var vendors = []string{
	"0x15b3", // NVIDIA, Mellanox
	"0x14e4", // Broadcom
	"0x8086", // Intel
	"0x1077", // Marvell, QLogic
	"0x1dd8", // AMD, Pensando
	"0x1d0f", // Amazon
	"0x19e5", // Huawei
	"0x1425", // Chelsio
	"0x1414", // Microsoft
}

// nics lists the network functions of PCI that can be RDMA devices.
func (r *reader) nics() {
	const dir = "sys/bus/pci/devices"
	names := r.list(dir, maxNetdevs)
	for _, addr := range names {
		at := dir + "/" + addr + "/"
		class := quiet(r, at+"class", text).Or("")
		if !strings.HasPrefix(class, "0x0200") && !strings.HasPrefix(class, "0x0207") {
			continue
		}
		n := snapshot.PCINIC{Address: addr, Vendor: quiet(r, at+"vendor", text).Or(""), Device: quiet(r, at+"device", text).Or("")}
		if !slices.Contains(vendors, n.Vendor) {
			continue
		}
		if d := r.link(at + "driver"); d != "" {
			n.Driver = snapshot.Known(d)
		}
		r.snap.NICs = append(r.snap.NICs, n)
	}
}

// relate fills in what the parts of a host know of each other.
func (r *reader) relate() {
	for i := range r.snap.NICs {
		n := &r.snap.NICs[i]
		for _, d := range r.snap.Devices {
			if d.PCI != nil && d.PCI.Address == n.Address {
				n.RDMA = append(n.RDMA, d.Name)
			}
		}
		for _, d := range r.snap.Netdevs {
			if d.PCI != nil && d.PCI.Address == n.Address {
				n.Netdevs = append(n.Netdevs, d.Name)
			}
		}
	}
	for i := range r.snap.Devices {
		d := &r.snap.Devices[i]
		for k := range d.Ports {
			p := &d.Ports[k]
			if nd := r.snap.Netdev(p.Netdev.Or("")); nd != nil {
				if !p.NetIndex.IsKnown() {
					p.NetIndex = nd.Index
				}
				p.ActiveMTU = either(p.ActiveMTU, activeMTU(d, p, nd))
			}
		}
	}
}

// activeMTU is what the kernel makes of the MTU of a RoCE port's interface where
// nobody has asked the device: the largest of IBA's MTUs that fits with the longest
// headers. rdma_rxe takes 80 bytes for them, the others 96 (GRH, UDP, BTH, XRC,
// atomic headers, ICRC). A port that can less has less.
func activeMTU(d *snapshot.Device, p *snapshot.Port, n *snapshot.Netdev) snapshot.Value[int] {
	mtu, ok := n.MTU.Get()
	if !ok || p.LinkLayer.Or("") != "Ethernet" || d.Protocol.Or("roce") != "roce" || d.Kind == snapshot.SIW {
		return snapshot.Value[int]{}
	}
	room := mtu - 96
	if d.Kind == snapshot.RXE {
		room = mtu - 80
	}
	best := 0
	for m := 256; m <= 4096; m *= 2 {
		if m <= room {
			best = m
		}
	}
	if best == 0 {
		return snapshot.Value[int]{}
	}
	return snapshot.Known(best)
}
