package read

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

const classInfiniband = "sys/class/infiniband"

// devices joins what sysfs, netlink and the control sockets have.
func (r *reader) devices() {
	names := r.list(classInfiniband, maxDevices)
	known := map[string]snapshot.Device{}
	asked := ask[[]snapshot.Device](r, source.QueryDevices).Or(nil)
	for _, d := range asked {
		if d.Name == "" || clean(d.Name) != d.Name || !fs.ValidPath(d.Name) || strings.Contains(d.Name, "/") {
			r.problem(source.QueryDevices, fmt.Sprintf("a device has the odd name %.60q", d.Name))
			continue
		}
		if _, twice := known[d.Name]; twice {
			r.problem(source.QueryDevices, fmt.Sprintf("%s is listed twice: the first is taken", d.Name))
			continue
		}
		known[d.Name] = d
		if !slices.Contains(names, d.Name) && len(names) < maxDevices {
			names = append(names, d.Name)
		}
	}
	links := ask[map[string][]snapshot.Port](r, source.QueryLinks).Or(nil)
	sums := ask[map[string]map[string]uint64](r, source.QuerySummary).Or(nil)
	var uverbs map[string]uverbsOf
	if !r.opt.Counters {
		uverbs = r.uverbs()
	}
	for _, name := range names {
		if !r.opt.wants(name) {
			continue
		}
		d := r.device(name, known[name])
		d.Ports = r.ports(&d, links[name])
		d.Resources = sums[name]
		d.UVerbs, d.ABI = uverbs[name].name, uverbs[name].abi
		r.attributes(&d)
		if !r.opt.NoResources {
			r.resources(&d)
		}
		r.snap.Devices = append(r.snap.Devices, d)
	}
	r.own()
	slices.SortStableFunc(r.snap.Devices, func(a, b snapshot.Device) int {
		ai, aok := a.Index.Get()
		bi, bok := b.Index.Get()
		switch {
		case aok && bok && ai != bi:
			return cmp.Compare(ai, bi)
		case aok != bok:
			if aok {
				return -1
			}
			return 1
		}
		return snapshot.Natural(a.Name, b.Name)
	})
}

// own adds the devices that processes of this host hold. The kernel does not know
// them; a name that it knows is its own device.
func (r *reader) own() {
	for _, d := range r.held() {
		switch {
		case d.Name == "":
			r.problem(source.QueryVerbena, clean(d.Attr.Why()))
			continue
		case clean(d.Name) != d.Name || !fs.ValidPath(d.Name) || strings.Contains(d.Name, "/"):
			r.problem(source.QueryVerbena, fmt.Sprintf("a device has the odd name %.60q", d.Name))
			continue
		case r.snap.Device(d.Name) != nil:
			r.problem(source.QueryVerbena, fmt.Sprintf("%s of process %d: there is another device of that name", d.Name, d.PID))
			continue
		case !r.opt.wants(d.Name) || len(r.snap.Devices) >= maxDevices:
			continue
		}
		if r.opt.NoResources || r.opt.OwnCounts {
			d.QPs, d.CQs, d.MRs, d.PDs = snapshot.Value[[]snapshot.QP]{}, snapshot.Value[[]snapshot.CQ]{}, snapshot.Value[[]snapshot.MR]{}, snapshot.Value[[]snapshot.PD]{}
			d.CMIDs, d.SRQs, d.Contexts = snapshot.Value[[]snapshot.CMID]{}, snapshot.Value[[]snapshot.SRQ]{}, snapshot.Value[[]snapshot.Context]{}
		}
		if d.Kind == "" {
			d.Kind = snapshot.Verbena
		}
		if d.Ports == nil {
			d.Ports = []snapshot.Port{}
		}
		r.snap.Devices = append(r.snap.Devices, d)
	}
}

// held asks for devices that processes hold.
func (r *reader) held() []snapshot.Device {
	if r.opt.NoResources || r.opt.OwnCounts {
		if r.opt.Counters {
			if v := tell[[]snapshot.Device](r, source.QueryVerbenaCounters); !v.IsZero() {
				return v.Or(nil)
			}
		}
		if v := tell[[]snapshot.Device](r, source.QueryVerbenaCounts); !v.IsZero() {
			return v.Or(nil)
		}
	}
	return tell[[]snapshot.Device](r, source.QueryVerbena).Or(nil)
}

func (r *reader) device(name string, asked snapshot.Device) snapshot.Device {
	dir := classInfiniband + "/" + name + "/"
	d := snapshot.Device{Name: name, Index: asked.Index, Protocol: asked.Protocol, Attr: asked.Attr}
	d.NodeType = either(value(r, dir+"node_type", code), asked.NodeType)
	d.NodeGUID = either(value(r, dir+"node_guid", text), asked.NodeGUID)
	if !r.opt.Counters {
		d.SysImageGUID = either(value(r, dir+"sys_image_guid", text), asked.SysImageGUID)
		d.HWRev = value(r, dir+"hw_rev", text)
	}
	d.Firmware = either(nonEmpty(value(r, dir+"fw_ver", text)), asked.Firmware)
	d.BoardID = value(r, dir+"board_id", text)
	d.HCAType = value(r, dir+"hca_type", text)
	d.NodeDesc = value(r, dir+"node_desc", text)
	d.PCI = r.pci(dir + "device")
	if driver := r.link(dir + "device/driver"); driver != "" {
		d.Driver = snapshot.Known(driver)
	}
	d.Counters, _ = r.counters(dir + "hw_counters")
	d.Kind = r.kind(&d, dir)
	return d
}

// kind tells devices of software apart. rdma_rxe has an attribute of its own and its
// name as description, siw a description; a PCI function behind it makes hardware of
// every other one.
func (r *reader) kind(d *snapshot.Device, dir string) snapshot.Kind {
	desc := strings.ToLower(d.NodeDesc.Or(""))
	_, _, hasParent := r.file(dir + "parent")
	switch {
	case hasParent && d.NodeType.Or(1) == 1, desc == "rxe":
		d.Driver = snapshot.Known("rdma_rxe")
		return snapshot.RXE
	case strings.HasPrefix(desc, "siw") || strings.Contains(desc, "software iwarp"):
		d.Driver = snapshot.Known("siw")
		return snapshot.SIW
	case d.PCI == nil && d.Driver.IsZero() && strings.HasPrefix(d.Name, "rxe"):
		return snapshot.RXE
	case d.PCI == nil && d.Driver.IsZero() && strings.HasPrefix(d.Name, "siw"):
		return snapshot.SIW
	}
	return snapshot.Hardware
}

type uverbsOf struct {
	name snapshot.Value[string]
	abi  snapshot.Value[int]
}

// uverbs finds the character device of each RDMA device.
func (r *reader) uverbs() map[string]uverbsOf {
	const dir = "sys/class/infiniband_verbs"
	of := map[string]uverbsOf{}
	for _, n := range r.list(dir, maxDevices+1) {
		if !strings.HasPrefix(n, "uverbs") {
			continue // abi_version, of the class
		}
		dev := value(r, dir+"/"+n+"/ibdev", text).Or("")
		if !r.opt.wants(dev) {
			continue
		}
		of[dev] = uverbsOf{snapshot.Known(n), value(r, dir+"/"+n+"/abi_version", number)}
	}
	return of
}

func (r *reader) attributes(d *snapshot.Device) {
	if r.opt.NoResources || r.opt.NoAttr { // no device is opened
		return
	}
	v := ask[source.AttrAnswer](r, fmt.Sprintf(source.QueryAttr, d.Name))
	a, ok := v.Get()
	if !ok {
		if !v.IsZero() && !d.Attr.IsKnown() {
			d.Attr = snapshot.Unreadable[snapshot.Attr](v.Why())
		}
		return
	}
	if a.Device != nil {
		d.Attr = snapshot.Known(joined(d.Attr.Or(nil), a.Device))
	}
	for i := range d.Ports {
		p, ok := a.Ports[d.Ports[i].Number]
		if !ok {
			continue
		}
		o := &d.Ports[i]
		o.Attr = joined(o.Attr, p)
		for _, x := range []struct {
			to   *snapshot.Value[int]
			name string
		}{{&o.MaxMTU, "max_mtu"}, {&o.ActiveMTU, "active_mtu"}, {&o.Width, "active_width"}, {&o.Speed, "active_speed"}} {
			n, ok := p[x.name]
			if !ok || n == 0 || n > 1<<16 {
				continue
			}
			if strings.HasSuffix(x.name, "_mtu") && n <= 5 {
				n = 128 << n
			}
			*x.to = snapshot.Known(int(n))
		}
	}
}

// joined are the attributes of both; the second's hold.
func joined(a, b snapshot.Attr) snapshot.Attr {
	all := snapshot.Attr{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// either returns the first reading that was made, else what is known about why not.
func either[T any](a, b snapshot.Value[T]) snapshot.Value[T] {
	if a.IsKnown() || !b.IsKnown() && !a.IsZero() {
		return a
	}
	return b
}

func nonEmpty(v snapshot.Value[string]) snapshot.Value[string] {
	if s, ok := v.Get(); ok && s == "" {
		return snapshot.Value[string]{}
	}
	return v
}

// counters reads a directory with a number in each file; lifespan is the interval in
// milliseconds in which the driver does not look again.
func (r *reader) counters(dir string) (all snapshot.Counters, lifespan snapshot.Value[int]) {
	names, reason := r.tryList(dir, maxCounters)
	if reason != "" && reason != "not supported" {
		r.problem(dir, reason)
	}
	slices.Sort(names)
	for _, n := range names {
		if n == "lifespan" {
			lifespan = value(r, dir+"/"+n, number)
			continue
		}
		b, reason, ok := r.file(dir + "/" + n)
		if !ok && (reason == "" || reason == errSpent.Error()) {
			continue
		}
		if !ok && reason == "EISDIR" {
			continue
		}
		var v snapshot.Value[uint64]
		if ok {
			u, err := unsigned(clean(string(b)))
			if err == nil {
				v = snapshot.Known(u)
			} else {
				reason = err.Error()
			}
		}
		if !v.IsKnown() {
			v = snapshot.Unreadable[uint64](clean(reason))
			r.problem(dir+"/"+n, reason)
		}
		all = append(all, snapshot.Counter{Name: n, Value: v})
	}
	return all, lifespan
}
