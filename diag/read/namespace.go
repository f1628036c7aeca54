package read

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// interfaces are those of the network namespace that is read.
type interfaces struct {
	names []string
	asked map[string]snapshot.Netdev // what netlink says
	known bool                       // netlink has said it
	// strange has, for an interface whose directory in sysfs is not its own, why.
	strange map[string]string
	foreign bool // all of them: sysfs is of another namespace
}

const foreignSysfs = "shows the interfaces of another network namespace: mount sysfs anew in this one"

// interfaces joins the names of sysfs and netlink, once. Where sysfs was mounted for
// another network namespace, its interfaces are others with perhaps the same names, and
// only netlink's are taken.
func (r *reader) interfaces() *interfaces {
	if r.nets != nil {
		return r.nets
	}
	names, unread := r.tryList(classNet, maxNetdevs)
	if unread != "" {
		r.problem(classNet, unread)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "bonding_masters" })
	links := tell[[]snapshot.Netdev](r, source.QueryNetdevs)
	ours := &interfaces{asked: map[string]snapshot.Netdev{}, known: links.IsKnown(), strange: map[string]string{}}
	var order []string
	for _, d := range links.Or(nil) {
		if d.Name == "" || clean(d.Name) != d.Name || !fs.ValidPath(d.Name) || strings.Contains(d.Name, "/") {
			r.problem(source.QueryNetdevs, fmt.Sprintf("an interface has the odd name %.60q", d.Name))
			continue
		}
		if _, twice := ours.asked[d.Name]; !twice && len(ours.asked) < maxNetdevs {
			ours.asked[d.Name] = d
			order = append(order, d.Name)
		}
	}
	r.compare(ours, names)
	if unread != "" {
		for n := range ours.asked {
			ours.strange[n] = unread
		}
	}
	if ours.foreign {
		names = nil
	}
	listed := make(map[string]bool, len(names))
	for _, n := range names {
		listed[n] = true
	}
	for _, n := range order {
		if !listed[n] {
			names = append(names, n)
		}
	}
	ours.names = names
	r.nets = ours
	return ours
}

// compare finds what sysfs has of other interfaces. Indices and names are the same in
// many namespaces, so addresses count too: one interface that is the same in both shows
// that sysfs is of this namespace, and then another one that differs is a single
// stranger, such as one that was made anew between the two questions. The loopback
// interface is the same everywhere.
func (r *reader) compare(ours *interfaces, names []string) {
	if len(ours.asked) == 0 || len(names) == 0 {
		return
	}
	same, others := false, 0
	for _, n := range names {
		d, ok := ours.asked[n]
		if !ok {
			others++
			continue
		}
		switch why := r.differs(n, d); {
		case why != "":
			ours.strange[n] = why
			others++
		case n != "lo":
			same = true
		}
	}
	onlyLo := len(names) == 1 && names[0] == "lo" && len(ours.asked) > 1
	if !same && (others > 0 || onlyLo) {
		ours.foreign = true
		for n := range ours.asked {
			ours.strange[n] = "sysfs " + foreignSysfs
		}
		r.problem(classNet, foreignSysfs)
		return
	}
	for _, n := range names {
		if why := ours.strange[n]; why != "" {
			r.problem(classNet+"/"+n, why)
		}
	}
}

// differs says how sysfs and netlink differ about an interface; what one of them does not
// tell is no difference.
func (r *reader) differs(name string, d snapshot.Netdev) string {
	dir := classNet + "/" + name + "/"
	index, iok := quiet(r, dir+"ifindex", number).Get()
	mac, mok := quiet(r, dir+"address", text).Get()
	asked, aok := d.Index.Get()
	other, ook := d.MAC.Get()
	switch {
	case iok && aok && index != asked:
		return fmt.Sprintf("sysfs has another interface of that name: index %d, not %d", index, asked)
	case mok && ook && mac != "" && !strings.EqualFold(mac, other):
		return fmt.Sprintf("sysfs has another interface of that name: address %s, not %s", mac, other)
	}
	return ""
}
