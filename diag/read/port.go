package read

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// ports joins the ports of sysfs with those that netlink has. Their order is that of
// their numbers.
func (r *reader) ports(d *snapshot.Device, links []snapshot.Port) []snapshot.Port {
	dir := classInfiniband + "/" + d.Name + "/ports"
	asked := map[int]snapshot.Port{}
	for _, l := range links {
		if l.Number >= 1 && l.Number < maxPorts {
			if _, twice := asked[l.Number]; !twice {
				asked[l.Number] = l
			}
		}
	}
	inSysfs := map[int]bool{}
	var numbers []int
	for _, name := range r.list(dir, maxPorts) {
		n, err := strconv.Atoi(name)
		if err != nil || n < 1 || n >= maxPorts || strconv.Itoa(n) != name {
			r.problem(dir, fmt.Sprintf("%.40q is no port from 1 to %d", name, maxPorts-1))
			continue
		}
		inSysfs[n] = true
		numbers = append(numbers, n)
	}
	for n := range asked {
		if !inSysfs[n] {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	all := make([]snapshot.Port, 0, len(numbers))
	for _, n := range numbers {
		p := snapshot.Port{Number: n}
		if inSysfs[n] {
			p = r.port(d, dir, n)
		}
		merge(&p, asked[n])
		r.statistics(d, &p)
		r.netdevOf(d, &p, len(numbers))
		all = append(all, p)
	}
	return all
}

func (r *reader) port(d *snapshot.Device, ports string, n int) snapshot.Port {
	p := snapshot.Port{Number: n}
	dir := ports + "/" + strconv.Itoa(n) + "/"
	p.State = value(r, dir+"state", code)
	p.PhysState = value(r, dir+"phys_state", code)
	p.Rate = value(r, dir+"rate", text)
	if rate, ok := p.Rate.Get(); ok {
		p.RateMbps, p.Width, p.Speed = parseRate(rate)
	}
	p.LinkLayer = value(r, dir+"link_layer", text)
	p.Counters, _ = r.counters(dir + "counters")
	p.HWCounters, p.LifespanMs = r.counters(dir + "hw_counters")
	if r.opt.Counters {
		return p
	}
	p.LID = value(r, dir+"lid", number)
	p.LMC = value(r, dir+"lid_mask_count", number)
	p.SMLID = value(r, dir+"sm_lid", number)
	p.SMSL = value(r, dir+"sm_sl", number)
	p.CapMask = value(r, dir+"cap_mask", mask32)
	r.gids(&p, dir)
	p.PKeys = r.pkeys(dir + "pkeys")

	cm := "sys/kernel/config/rdma_cm/" + d.Name + "/ports/" + strconv.Itoa(n) + "/"
	p.CMRoCEMode = quiet(r, cm+"default_roce_mode", text)
	p.CMTOS = quiet(r, cm+"default_roce_tos", number)
	p.TrafficClass = value(r, classInfiniband+"/"+d.Name+"/tc/"+strconv.Itoa(n)+"/traffic_class", trafficClass)
	return p
}

// trafficClass reads "Global tclass=236"; other lines of the file are about flows.
func trafficClass(s string) (int, error) {
	_, after, ok := strings.Cut(s, "tclass=")
	if !ok {
		return number(s)
	}
	return number(after[:digits(after)])
}

// merge fills in what only netlink has.
func merge(p *snapshot.Port, asked snapshot.Port) {
	p.State = either(p.State, asked.State)
	p.PhysState = either(p.PhysState, asked.PhysState)
	p.LID = either(p.LID, asked.LID)
	p.LMC = either(p.LMC, asked.LMC)
	p.SMLID = either(p.SMLID, asked.SMLID)
	p.LinkLayer = either(p.LinkLayer, asked.LinkLayer)
	p.Netdev, p.NetIndex = asked.Netdev, asked.NetIndex
	if asked.Attr != nil {
		p.Attr = asked.Attr
	}
}

// statistics are the hardware counters as netlink has them; without sysfs they stand
// for its.
func (r *reader) statistics(d *snapshot.Device, p *snapshot.Port) {
	if r.opt.NoResources && len(p.HWCounters) > 0 {
		return
	}
	v := ask[map[int]snapshot.Counters](r, fmt.Sprintf(source.QueryStatistics, d.Name)).Or(nil)
	p.Statistics = v[p.Number]
	if !r.opt.NoResources && !r.opt.Counters {
		p.StatMode = ask[map[int]snapshot.StatMode](r, fmt.Sprintf(source.QueryStatModes, d.Name)).Or(nil)[p.Number]
	}
	if len(p.HWCounters) == 0 {
		p.HWCounters = slices.Clone(p.Statistics)
		slices.SortStableFunc(p.HWCounters, func(a, b snapshot.Counter) int { return strings.Compare(a.Name, b.Name) })
	}
}

// emptyGID and the prefix of link-local addresses alone are slots without an address.
const (
	emptyGID  = "0000:0000:0000:0000:0000:0000:0000:0000"
	prefixGID = "fe80:0000:0000:0000:0000:0000:0000:0000"
)

// gids reads the table in the order of the index. The kernel answers EINVAL for the
// attributes of an empty slot, so those are not asked.
func (r *reader) gids(p *snapshot.Port, dir string) {
	names := r.list(dir+"gids", maxGIDs)
	if len(names) == 0 {
		return
	}
	slices.SortFunc(names, snapshot.Natural)
	p.GIDSlots = snapshot.Known(len(names))
	for _, name := range names {
		if n := len(p.GIDs); r.opt.Counters && n > 0 && p.GIDs[n-1].Netdev.Or("") != "" {
			break // that was the question
		}
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 {
			r.problem(dir+"gids", fmt.Sprintf("%.40q is no index", name))
			continue
		}
		v := value(r, dir+"gids/"+name, gid)
		g, ok := v.Get()
		if !ok || g == emptyGID || g == prefixGID && p.LinkLayer.Or("") != "InfiniBand" {
			continue
		}
		p.GIDs = append(p.GIDs, snapshot.GID{
			Index: i, GID: g,
			Type:   r.gidAttr(dir + "gid_attrs/types/" + name),
			Netdev: r.gidAttr(dir + "gid_attrs/ndevs/" + name),
		})
	}
}

// gidAttr reads an attribute of a slot. EINVAL says that the slot was emptied
// meanwhile, or that the port has none: InfiniBand's have no interface.
func (r *reader) gidAttr(name string) snapshot.Value[string] {
	v := quiet(r, name, text)
	if !v.IsKnown() && !v.IsZero() && v.Why() != "EINVAL" {
		r.problem(name, v.Why())
	}
	return v
}

// gid checks the eight groups of four digits.
func gid(s string) (string, error) {
	if len(s) != len(emptyGID) {
		return "", odd(s, "a GID of 39 characters")
	}
	for i := range len(s) {
		c := s[i]
		if i%5 == 4 && c != ':' || i%5 != 4 && !hexDigit(c) {
			return "", odd(s, "a GID")
		}
	}
	return s, nil
}

func hexDigit(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }

func (r *reader) pkeys(dir string) []uint16 {
	names := r.list(dir, maxGIDs)
	slices.SortFunc(names, snapshot.Natural)
	var keys []uint16
	for _, n := range names {
		k, ok := value(r, dir+"/"+n, mask32).Get()
		if ok && k != 0 && k <= 0xffff {
			keys = append(keys, uint16(k))
		}
	}
	return keys
}

// netdevOf says which interface carries a port: netlink's word, else that of the
// first GID, else the only interface of the same PCI function, else the parent of a
// device of software.
func (r *reader) netdevOf(d *snapshot.Device, p *snapshot.Port, ports int) {
	if p.Netdev.IsKnown() || p.LinkLayer.Or("Ethernet") != "Ethernet" {
		return
	}
	if r.opt.Counters && len(p.GIDs) == 0 { // now they are needed
		r.gids(p, classInfiniband+"/"+d.Name+"/ports/"+strconv.Itoa(p.Number)+"/")
	}
	for _, g := range p.GIDs {
		if n, ok := g.Netdev.Get(); ok && n != "" {
			p.Netdev = snapshot.Known(n)
			return
		}
	}
	if ports != 1 {
		return
	}
	if parent := quiet(r, classInfiniband+"/"+d.Name+"/parent", text); parent.Or("") != "" {
		p.Netdev = parent
		return
	}
	if r.interfaces().foreign { // and so would be these
		return
	}
	if names, _ := r.tryList(classInfiniband+"/"+d.Name+"/device/net", maxNetdevs); len(names) == 1 {
		p.Netdev = snapshot.Known(names[0])
	}
}

// parseRate reads "100 Gb/sec (4X EDR)": the rate, and the codes of width and speed of
// IBA 14.2.5.6 where the words are known.
func parseRate(s string) (mbps snapshot.Value[int64], width, speed snapshot.Value[int]) {
	head, rest, ok := strings.Cut(s, " Gb/sec")
	if !ok {
		return
	}
	g, err := strconv.ParseFloat(strings.TrimSpace(head), 64)
	if err != nil || g < 0 || g > 1e6 {
		return
	}
	mbps = snapshot.Known(int64(g*1000 + 0.5))
	words := strings.Fields(strings.Trim(strings.TrimSpace(rest), "()"))
	if len(words) > 0 {
		if w, ok := map[string]int{"1X": 1, "4X": 2, "8X": 4, "12X": 8, "2X": 16}[words[0]]; ok {
			width = snapshot.Known(w)
		}
	}
	name := "SDR"
	if len(words) > 1 {
		name = words[1]
	}
	if c, ok := map[string]int{"SDR": 1, "DDR": 2, "QDR": 4, "FDR10": 8, "FDR": 16, "EDR": 32, "HDR": 64, "NDR": 128, "XDR": 256}[name]; ok {
		speed = snapshot.Known(c)
	}
	return
}

// digits is the length of the number that a text begins with.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }
