package rtnl_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source/rtnl"
	"github.com/verbena-rdma/verbena/internal/need"
	"github.com/verbena-rdma/verbena/test/interop/netns"
)

// made is a namespace with interfaces, addresses, routes, rules and neighbours. Kinds of
// interfaces that the kernel does not have are left out.
func made(t *testing.T) *netns.Space {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		need.Missing(t, "no ip program (package iproute2)")
	}
	s := netns.New(t)
	s.Run("ip link set lo up", "ip link add v0 mtu 9000 type veth peer name v1", "ip link set v0 up", "ip link set v1 up",
		"ip addr add 10.1.0.1/24 dev v0", "ip addr add 10.1.0.2/24 dev v0", "ip addr add 10.9.0.1 peer 10.9.0.2/32 dev v0",
		"ip addr add 10.2.0.1/24 dev v0 valid_lft 1000 preferred_lft 500", "ip addr add 10.3.0.1/24 dev v0 noprefixroute",
		"ip -6 addr add fd00:1::1/64 dev v0 nodad", "ip -6 addr add fd00:2::1/64 dev v0", "ip -6 addr add fd00:3::1/64 dev v0 nodad valid_lft 1000 preferred_lft 0",
		"ip -6 addr add fd00:4::1/64 dev v0 nodad valid_lft 1000 preferred_lft 500", "ip -6 addr add fd00:5::1 peer fd00:5::2/128 dev v0 nodad",
		"ip route add 10.20.0.0/16 via 10.1.0.9 mtu 1400", "ip route add 10.21.0.0/16 via 10.1.0.9 src 10.1.0.2 metric 7",
		"ip route add 10.22.0.0/16 nexthop via 10.1.0.9 weight 1 nexthop via 10.1.0.10 weight 3", "ip route add default via 10.1.0.254 table 100",
		"ip route add blackhole 10.23.0.0/16", "ip route add unreachable 10.24.0.0/16", "ip route add prohibit 10.25.0.0/16 table 200", "ip route add throw 10.26.0.0/16",
		"ip route add 10.27.0.0/16 via inet6 fd00:1::9 dev v0",
		"ip -6 route add fd20::/16 via fd00:1::9 mtu 1300", "ip -6 route add fd21::/16 nexthop via fd00:1::9 nexthop via fd00:1::a", "ip -6 route add default via fe80::1 dev v0 table 100",
		"ip -6 route add blackhole fd23::/16", "ip -6 route add unreachable fd24::/16",
		"ip rule add from 10.1.0.0/24 table 100 priority 500", "ip rule add to 10.20.0.0/16 iif v0 table 300 priority 501", "ip rule add oif v1 table 100 priority 502",
		"ip -6 rule add from fd00:1::/64 table 100 priority 503",
		"ip neigh add 10.1.0.9 lladdr 02:00:00:00:00:09 dev v0 nud permanent", "ip neigh add 10.1.0.10 lladdr 02:00:00:00:00:0a dev v0 nud stale",
		"ip neigh add 10.1.0.11 dev v0 nud failed", "ip neigh add 10.1.0.12 lladdr 02:00:00:00:00:0c dev v0 nud reachable", "ip neigh add 10.1.0.13 lladdr 02:00:00:00:00:0d dev v0 nud noarp",
		"ip -6 neigh add fd00:1::9 lladdr 02:00:00:00:00:09 dev v0 nud permanent", "ip -6 neigh add fd00:1::b dev v0 nud failed")
	for _, optional := range [][]string{
		{"ip link add br0 type bridge", "ip link set v1 master br0"},
		{"ip link add link v0 name mv0 type macvlan mode bridge", "ip link set mv0 up", "ip addr add 10.4.0.1/24 dev mv0"},
		{"ip link add link v0 name v0.100 type vlan id 100", "ip link set v0.100 up"},
		{"ip link add d0 type dummy", "ip link add bond0 type bond", "ip link set d0 master bond0"},
		{"ip link add vrf7 type vrf table 700", "ip link set vrf7 up"},
		{"ip link add vx0 type vxlan id 5 dstport 4789"},
	} {
		for _, c := range optional {
			if out, err := s.Output(strings.Fields(c)...); err != nil {
				t.Logf("left out: %s: %s", c, out)
				break
			}
		}
	}
	return s
}

// ip runs the judge, which prints JSON.
func ip(t *testing.T, s *netns.Space, args ...string) []map[string]any {
	t.Helper()
	out, err := s.Output(append([]string{"ip", "-j", "-d"}, args...)...)
	if err != nil {
		t.Fatalf("ip %q: %v: %s", args, err, out)
	}
	var all []map[string]any
	if strings.TrimSpace(out) == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("ip %q: %v: %s", args, err, out)
	}
	return slices.DeleteFunc(all, func(m map[string]any) bool { return len(m) == 0 })
}

// text is a member as text, empty if it is not there.
func text(m map[string]any, key string) string {
	switch v := m[key].(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// same compares facts, each a line.
func same(t *testing.T, what string, theirs, ours []string) {
	t.Helper()
	slices.Sort(theirs)
	slices.Sort(ours)
	if d := cmp.Diff(theirs, ours); d != "" || len(ours) == 0 {
		t.Errorf("%s: -ip +ours\n%s", what, d)
	}
}

// TestAsIPSaysIt asks the kernel and Debian's ip for the same, in one namespace.
func TestAsIPSaysIt(t *testing.T) {
	s := made(t)
	var links []snapshot.Netdev
	var addrs map[string][]snapshot.Address
	var routes []snapshot.Route
	var rules []snapshot.PolicyRule
	var neighbours []snapshot.Neighbour
	ask := func() {
		s.Do(func() {
			c, err := rtnl.Open()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for _, f := range []func() error{
				func() (err error) { links, err = c.Links(); return },
				func() (err error) { addrs, err = c.Addresses(); return },
				func() (err error) { routes, err = c.Routes(); return },
				func() (err error) { rules, err = c.Rules(); return },
				func() (err error) { neighbours, err = c.Neighbours(); return },
			} {
				if err := f(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	// Duplicate address detection takes a second; then nothing changes by itself.
	for range 100_000 {
		if out, err := s.Output("ip", "-6", "addr", "show", "tentative"); err == nil && strings.TrimSpace(out) == "" {
			break
		}
	}
	ask()

	t.Run("link", func(t *testing.T) {
		var ours, theirs []string
		for _, n := range links {
			ours = append(ours, fmt.Sprintln(n.Name, n.Index.Or(-1), n.MTU.Or(-1), n.MAC.Or(""), n.OperState.Or(""), n.Master.Or(""), n.VLAN.Or(0), n.Parent.Or("")))
		}
		for _, m := range ip(t, s, "link") {
			vlan, parent := "0", ""
			if info, ok := m["linkinfo"].(map[string]any); ok && text(info, "info_kind") == "vlan" {
				vlan, parent = text(info["info_data"].(map[string]any), "id"), text(m, "link")
			}
			theirs = append(theirs, fmt.Sprintln(text(m, "ifname"), text(m, "ifindex"), text(m, "mtu"), text(m, "address"), strings.ToLower(text(m, "operstate")), text(m, "master"), vlan, parent))
		}
		same(t, "link", theirs, ours)
	})
	t.Run("addr", func(t *testing.T) {
		var ours, theirs []string
		for dev, list := range addrs {
			for _, a := range list {
				flags := slices.Clone(a.Flags)
				slices.Sort(flags)
				ours = append(ours, fmt.Sprintln(dev, a.Prefix, flags))
			}
		}
		for _, m := range ip(t, s, "addr") {
			infos, _ := m["addr_info"].([]any)
			for _, i := range infos {
				a, _ := i.(map[string]any)
				if len(a) == 0 {
					continue
				}
				flags := []string{}
				for _, f := range []string{"dadfailed", "deprecated", "dynamic", "mngtmpaddr", "noprefixroute", "optimistic", "secondary", "tentative"} {
					if a[f] == true {
						flags = append(flags, f)
					}
				}
				theirs = append(theirs, fmt.Sprintln(text(m, "ifname"), text(a, "local")+"/"+text(a, "prefixlen"), flags))
			}
		}
		same(t, "addr", theirs, ours)
	})
	t.Run("route", func(t *testing.T) {
		var ours, theirs []string
		for _, r := range routes {
			ours = append(ours, fmt.Sprintln(r.Type, r.Dst, r.Via, r.Dev, r.Src, r.Table, r.Metric, r.MTU))
		}
		for _, family := range []string{"-4", "-6"} {
			for _, m := range ip(t, s, "-N", family, "route", "show", "table", "all") {
				theirs = append(theirs, routeLines(m, family)...)
			}
		}
		same(t, "route", theirs, ours)
	})
	t.Run("rule", func(t *testing.T) {
		var ours, theirs []string
		for _, r := range rules {
			ours = append(ours, fmt.Sprintln(r.Priority, r.From, r.To, r.IIF, r.OIF, r.Table))
		}
		for _, family := range []string{"-4", "-6"} {
			for _, m := range ip(t, s, "-N", family, "rule") {
				prefix := func(key string) string {
					a := text(m, key)
					if a == "" || a == "all" {
						return ""
					}
					if l := text(m, key+"len"); l != "" {
						return a + "/" + l
					}
					return a + map[string]string{"-4": "/32", "-6": "/128"}[family]
				}
				table := text(m, "table")
				if table == "" {
					table = "0"
				}
				theirs = append(theirs, fmt.Sprintln(text(m, "priority"), prefix("src"), prefix("dst"), text(m, "iif"), text(m, "oif"), table))
			}
		}
		same(t, "rule", theirs, ours)
	})
	t.Run("neigh", func(t *testing.T) {
		var ours, theirs []string
		for _, n := range neighbours {
			ours = append(ours, fmt.Sprintln(n.IP, n.Dev, n.MAC, n.State))
		}
		for _, family := range []string{"-4", "-6"} {
			for _, m := range ip(t, s, family, "neigh", "show", "nud", "all") {
				state := fmt.Sprint(m["state"].([]any)[0])
				if state == "NOARP" { // of groups and loopback
					continue
				}
				theirs = append(theirs, fmt.Sprintln(text(m, "dst"), text(m, "dev"), text(m, "lladdr"), state))
			}
		}
		same(t, "neigh", theirs, ours)
	})
}

// routeLines are the rows of a route of ip: one for each next hop.
func routeLines(m map[string]any, family string) []string {
	dst := text(m, "dst")
	if dst != "default" && !strings.Contains(dst, "/") {
		dst += map[string]string{"-4": "/32", "-6": "/128"}[family]
	}
	table := text(m, "table")
	if table == "" {
		table = "254"
	}
	or0 := func(s string) string {
		if s == "" {
			return "0"
		}
		return s
	}
	mtu := ""
	if list, ok := m["metrics"].([]any); ok && len(list) > 0 {
		mtu = text(list[0].(map[string]any), "mtu")
	}
	line := func(hop map[string]any) string {
		gw := text(hop, "gateway")
		if via, ok := hop["via"].(map[string]any); ok {
			gw = text(via, "host")
		}
		return fmt.Sprintln(kindOf(text(m, "type")), dst, gw, text(hop, "dev"), text(m, "prefsrc"), table, or0(text(m, "metric")), or0(mtu))
	}
	hops, ok := m["nexthops"].([]any)
	if !ok {
		return []string{line(m)}
	}
	var all []string
	for _, h := range hops {
		all = append(all, line(h.(map[string]any)))
	}
	return all
}

// kindOf is the type of a route by its word or number.
func kindOf(s string) string {
	words := []string{"none", "unicast", "local", "broadcast", "anycast", "multicast", "blackhole", "unreachable", "prohibit", "throw", "nat"}
	if n, err := strconv.Atoi(s); err == nil && n < len(words) {
		return words[n]
	}
	return s
}
