package source

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source/dcbnl"
	"github.com/verbena-rdma/verbena/diag/source/ethtool"
	"github.com/verbena-rdma/verbena/diag/source/iptables"
	"github.com/verbena-rdma/verbena/diag/source/nft"
	"github.com/verbena-rdma/verbena/diag/source/nldev"
	"github.com/verbena-rdma/verbena/diag/source/rtnl"
	"github.com/verbena-rdma/verbena/diag/source/uverbs"
)

func supported() error { return nil }

// clients are opened when they are first asked.
type clients struct {
	rdma *nldev.Client
	rt   *rtnl.Client
	dcb  *dcbnl.Client
	eth  *ethtool.Client
}

func (c *clients) close() {
	if c.rdma != nil {
		c.rdma.Close()
	}
	if c.rt != nil {
		c.rt.Close()
	}
	if c.dcb != nil {
		c.dcb.Close()
	}
	if c.eth != nil {
		c.eth.Close()
	}
	*c = clients{}
}

// opened returns a client, opened if it is not yet.
func opened[T any](at **T, open func() (*T, error)) (*T, error) {
	if *at == nil {
		c, err := open()
		if err != nil {
			return nil, err
		}
		*at = c
	}
	return *at, nil
}

// kernel answers the queries that are the kernel's.
func (l *Live) kernel(query string) (any, error) {
	switch query {
	case QueryChardevs:
		return l.chardevs()
	case QueryNFT:
		return nft.Read()
	case QueryIPTables:
		return l.iptables("ip_tables_names", iptables.Read)
	case QueryIP6Tables:
		return l.iptables("ip6_tables_names", iptables.ReadIPv6)
	case QueryNetdevs, QueryAddresses, QueryRoutes, QueryRules, QueryNeighbours:
		return l.route(query)
	}
	if name, _, ok := parts(query, "rdma/attr/"); ok {
		return l.attributes(name)
	}
	if strings.HasPrefix(query, "rdma/") {
		return l.rdma(query)
	}
	if name, rest, ok := parts(query, "ethtool/"); ok {
		return l.ethtool(name, rest)
	}
	if name, what, ok := parts(query, "dcb/"); ok {
		c, err := opened(&l.clients.dcb, dcbnl.Open)
		if err != nil {
			return nil, err
		}
		if what == "pfc" {
			return c.PFC(name)
		}
		return c.Get(name)
	}
	return nil, ErrNoEntry
}

// iptables reads a table if the kernel has it. /proc/net is the namespace of the first
// thread, that of the thread itself is the one that is asked.
func (l *Live) iptables(names string, read func([]byte) (string, error)) (any, error) {
	b, err := l.proc.readFile("thread-self/net/"+names, maxLink)
	if err != nil {
		return nil, err
	}
	return read(b)
}

func (l *Live) route(query string) (any, error) {
	c, err := opened(&l.clients.rt, rtnl.Open)
	if err != nil {
		return nil, err
	}
	switch query {
	case QueryNetdevs:
		return c.Links()
	case QueryAddresses:
		return c.Addresses()
	case QueryRoutes:
		return c.Routes()
	case QueryRules:
		return c.Rules()
	}
	return c.Neighbours()
}

func (l *Live) ethtool(ifname, what string) (any, error) {
	c, err := opened(&l.clients.eth, ethtool.Open)
	if err != nil {
		return nil, err
	}
	if flow, ok := strings.CutPrefix(what, "hash/"); ok {
		return c.Hash(ifname, flow)
	}
	switch what {
	case "stats":
		return c.Stats(ifname)
	case "features":
		return c.Features(ifname)
	case "rings":
		return c.Rings(ifname)
	case "channels":
		return c.Channels(ifname)
	case "pause":
		return c.Pause(ifname)
	case "driver":
		return c.Driver(ifname)
	case "fec":
		return c.FEC(ifname)
	}
	return nil, ErrNoEntry
}

// rdma answers the queries of the RDMA subsystem. A kernel without it has no such
// netlink family; then the host does not have the thing.
func (l *Live) rdma(query string) (any, error) {
	first := query == QueryDevices || query == QuerySubsystem
	if l.noRDMA && !first {
		return nil, ErrNoEntry
	}
	c, err := opened(&l.clients.rdma, func() (*nldev.Client, error) { return nldev.Open(l.comm) })
	l.noRDMA = err != nil && errors.Is(Failed(err), Failure("EPROTONOSUPPORT"))
	if err != nil {
		if l.noRDMA {
			return nil, ErrNoEntry
		}
		return nil, err
	}
	switch query {
	case QuerySubsystem:
		return c.System()
	case QuerySummary:
		return c.Summary()
	case QueryDevices, QueryLinks:
		return l.rdmaDevices(c, query)
	}
	if name, _, ok := parts(query, "rdma/stat/"); ok {
		return l.statistics(c, name)
	}
	if name, _, ok := parts(query, "rdma/statmode/"); ok {
		return l.statModes(c, name)
	}
	if name, _, ok := parts(query, "rdma/statqp/"); ok {
		i, err := l.deviceIndex(c, name)
		if err != nil {
			return nil, err
		}
		return c.BoundCounters(i)
	}
	kind, name, _ := strings.Cut(strings.TrimPrefix(query, "rdma/res/"), "/")
	if !strings.HasPrefix(query, "rdma/res/") || name == "" {
		return nil, ErrNoEntry
	}
	i, err := l.deviceIndex(c, name)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "qp":
		return c.QPs(i)
	case "cq":
		return c.CQs(i)
	case "mr":
		return c.MRs(i)
	case "pd":
		return c.PDs(i)
	case "cm":
		return c.CMIDs(i)
	case "srq":
		return c.SRQs(i)
	case "ctx":
		return c.Contexts(i)
	}
	return nil, ErrNoEntry
}

func (l *Live) rdmaDevices(c *nldev.Client, query string) (any, error) {
	devices, err := c.Devices()
	if err != nil {
		return nil, err
	}
	l.index = map[string]int{}
	clear(l.comms) // a new round: processes may have changed
	for _, d := range devices {
		l.index[d.Name] = d.Index.Or(-1)
	}
	if query == QueryDevices {
		return devices, nil
	}
	links := map[string][]snapshot.Port{}
	for _, d := range devices {
		ports, err := c.Ports(d.Index.Or(-1))
		if err != nil {
			return nil, fmt.Errorf("ports of %s: %w", d.Name, err)
		}
		links[d.Name] = ports
	}
	return links, nil
}

func (l *Live) deviceIndex(c *nldev.Client, name string) (int, error) {
	if l.index == nil {
		if _, err := l.rdmaDevices(c, QueryDevices); err != nil {
			return 0, err
		}
	}
	i, ok := l.index[name]
	if !ok {
		return 0, ErrNoEntry
	}
	return i, nil
}

func (l *Live) statistics(c *nldev.Client, name string) (any, error) {
	return byPort(l, c, name, c.Statistics)
}

func (l *Live) statModes(c *nldev.Client, name string) (any, error) {
	return byPort(l, c, name, c.StatMode)
}

// byPort asks for something of every port of a device.
func byPort[T any](l *Live, c *nldev.Client, name string, get func(index, port int) (T, error)) (map[int]T, error) {
	i, err := l.deviceIndex(c, name)
	if err != nil {
		return nil, err
	}
	ports, err := c.Ports(i)
	if err != nil {
		return nil, err
	}
	all := map[int]T{}
	for _, p := range ports {
		v, err := get(i, p.Number)
		if err != nil {
			return nil, err
		}
		all[p.Number] = v
	}
	return all, nil
}

// attributes asks the character device of a device.
func (l *Live) attributes(name string) (any, error) {
	const class = "class/infiniband_verbs"
	entries, err := l.sys.readDir(class)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		of, err := l.sys.readFile(class+"/"+e.Name()+"/ibdev", maxLink)
		if err != nil || strings.TrimSpace(string(of)) != name {
			continue
		}
		device, ports, err := uverbs.Query(l.cfg.DevRoot + "/infiniband/" + e.Name())
		if err != nil {
			return nil, err
		}
		return AttrAnswer{Device: device, Ports: ports}, nil
	}
	return nil, ErrNoEntry
}

// chardevs lists /dev/infiniband. Whether a device may be opened is asked with
// access(2), which opens nothing.
func (l *Live) chardevs() (any, error) {
	if l.dev == nil {
		return nil, ErrNoEntry
	}
	entries, err := l.dev.readDir("infiniband")
	if err != nil {
		return nil, err
	}
	all := []snapshot.Chardev{}
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil || fi.Mode()&fs.ModeCharDevice == 0 {
			continue
		}
		st, ok := fi.Sys().(*syscall.Stat_t)
		if !ok {
			continue
		}
		c := snapshot.Chardev{Name: e.Name(), Mode: fmt.Sprintf("%04o", st.Mode&0o7777), UID: int(st.Uid), GID: int(st.Gid), Open: snapshot.Known(true)}
		if err := unix.Faccessat(unix.AT_FDCWD, l.cfg.DevRoot+"/infiniband/"+e.Name(), unix.R_OK|unix.W_OK, unix.AT_EACCESS); err != nil {
			c.Open = snapshot.Unreadable[bool](Failed(err).Error())
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b snapshot.Chardev) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
