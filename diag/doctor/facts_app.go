package doctor

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// appFacts are those of a program, and of the GID that it uses.
var appFacts = map[string]fact{
	"app.comm":          appFact("name of the program", func(a *snapshot.App) snapshot.Value[string] { return a.Comm }, ""),
	"app.memlock":       appFact("limit of locked memory in bytes, -1 for none", func(a *snapshot.App) snapshot.Value[int64] { return a.Memlock }, "/proc/PID/limits"),
	"app.shell_memlock": appFact("the same limit of the shell", func(a *snapshot.App) snapshot.Value[int64] { return a.ShellLimit }, "ulimit -l"),
	"app.ipc_lock":      {doc: "whether it has CAP_IPC_LOCK, for which the limit does not count", get: ipcLock},
	"app.path_mtu":      appFact("path MTU that it sets, in bytes", func(a *snapshot.App) snapshot.Value[int] { return a.PathMTU }, "the program"),
	"app.max_inline":    appFact("inline bytes that it asks for", func(a *snapshot.App) snapshot.Value[int] { return a.MaxInline }, "the program"),
	"app.max_send_wr":   appFact("work requests that it asks for", func(a *snapshot.App) snapshot.Value[int] { return a.MaxSendWR }, "the program"),
	"app.goodput_mbps":  appFact("throughput that it reached, in Mb/s", func(a *snapshot.App) snapshot.Value[float64] { return a.GoodputMbps }, "the program"),
	"app.peer":          appFact("address of the far end", func(a *snapshot.App) snapshot.Value[string] { return a.Peer }, "the program"),
	"app.fork_safe":     {doc: "whether it asks for fork safety", get: env1("RDMAV_FORK_SAFE", "IBV_FORK_SAFE")},
	"app.huge_safe":     {doc: "whether it asks for fork safety of huge pages", get: env1("RDMAV_HUGEPAGES_SAFE")},
	"app.largest_reg":   {doc: "bytes of the largest registration that failed", get: largestRegistration},
	"app.log_text": {doc: "lines that it printed", get: func(s *scope) reading {
		if a := s.app(); a != nil && a.Log != nil {
			return is(strings.Join(a.Log, "\n"), "log")
		}
		return none("log", "no log was given (--log FILE)")
	}},

	"port.gid_mixed":       {doc: "whether queue pairs of the port use different GID indexes; those of the kernel do not tell", each: ofPort, get: mixed(func(q *snapshot.QP) snapshot.Value[int] { return q.GIDIndex })},
	"port.class_mixed":     {doc: "whether queue pairs of the port have different traffic classes; those of the kernel do not tell", each: ofPort, get: mixed(func(q *snapshot.QP) snapshot.Value[int] { return q.TrafficClass })},
	"port.gid_index":       {doc: "GID index in use: of the program, its environment or a queue pair", each: ofPort, get: gidIndex},
	"port.gid":             {doc: "the GID of this index", each: ofPort, get: gidRow(func(g *snapshot.GID) snapshot.Value[string] { return snapshot.Known(g.GID) })},
	"port.gid_type":        {doc: "its type, RoCE v2 or IB/RoCE v1", each: ofPort, get: gidRow(func(g *snapshot.GID) snapshot.Value[string] { return g.Type })},
	"port.gid_scope":       {doc: "empty, link-local, ipv4 or global", each: ofPort, get: gidScope},
	"port.gid_best":        {doc: "index of a routable RoCE v2 GID: IPv4 first, then global IPv6", each: ofPort, get: bestGID},
	"port.gid_count":       {doc: "rows of the GID table in use", each: ofPort, get: gidCount},
	"port.gid_v2_routable": {doc: "rows that are RoCE v2 with an IPv4 or global address", each: ofPort, get: gidV2},
	"port.peer_other_net":  {doc: "whether the far end is in no subnet of the interface", each: ofPort, get: peerOtherNet},
}

func noApp() reading {
	return none("", "nothing is known of a program (--pid, --app, --log)")
}

func appFact[T any](doc string, get func(*snapshot.App) snapshot.Value[T], place string) fact {
	return fact{doc: doc, get: func(s *scope) reading {
		a := s.app()
		if a == nil {
			return noApp()
		}
		return val(get(a), place)
	}}
}

// capIPCLock is the bit of CAP_IPC_LOCK, capabilities(7).
const capIPCLock = 14

func ipcLock(s *scope) reading {
	a := s.app()
	if a == nil {
		return noApp()
	}
	c, ok := a.CapEff.Get()
	if !ok {
		return none("/proc/PID/status", "%s", a.CapEff.Why())
	}
	return is(c>>capIPCLock&1 == 1, "/proc/PID/status")
}

func env1(names ...string) func(*scope) reading {
	return func(s *scope) reading {
		a := s.app()
		if a != nil && a.EnvUnreadable != "" {
			return none("/proc/PID/environ", "%.200s", a.EnvUnreadable)
		}
		if a == nil || a.Env == nil {
			return none("", "the environment of the program is not known (--pid, --app)")
		}
		for _, n := range names {
			if v, ok := a.Env[n]; ok && v != "" && v != "0" {
				return is(true, "environment: "+n+"="+v)
			}
		}
		return is(false, "environment")
	}
}

func largestRegistration(s *scope) reading {
	a := s.app()
	if a == nil {
		return noApp()
	}
	most := int64(-1)
	for i := range a.Events {
		if e := &a.Events[i]; e.Kind == "reg_mr" {
			most = max(most, e.Bytes)
		}
	}
	if most <= 0 {
		return none("log", "no registration of a known size has failed, or none is logged")
	}
	return is(most, "log")
}

// event reports whether the program has printed an error of a kind, with one of the
// codes: the status of a completion, else an errno. No codes are any.
func (s *scope) event(kind string, codes []int, t *trace) (bool, error) {
	a := s.app()
	if a == nil || a.Log == nil && a.Events == nil {
		return false, &unknown{"log", "no log of the program was given (--log FILE)"}
	}
	for i := range a.Events {
		e := &a.Events[i]
		code := e.Errno
		if kind == "completion" {
			code = e.Status
		}
		if e.Kind == kind && (len(codes) == 0 || slices.Contains(codes, code)) {
			t.add(Evidence{What: "the program printed", Value: strings.TrimSpace(e.Text), Place: fmt.Sprintf("log line %d", e.Line)})
			return true, nil
		}
	}
	return false, nil
}

// logged reports whether a line that the program printed matches a pattern.
func (s *scope) logged(pattern string, t *trace) (bool, error) {
	a := s.app()
	if a == nil || a.Log == nil {
		return false, &unknown{"app.log_text", "no log was given (--log FILE)"}
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return false, err
	}
	for i, line := range a.Log {
		if re.MatchString(line) {
			t.add(Evidence{What: "the program printed", Value: strings.TrimSpace(line), Place: fmt.Sprintf("log line %d", i+1)})
			return true, nil
		}
	}
	return false, nil
}

// gidIndexNames are the variables by which programs choose a GID index.
var gidIndexNames = []string{"NCCL_IB_GID_INDEX", "UCX_IB_GID_INDEX", "NVSHMEM_IB_GID_INDEX", "MC_GID_INDEX"}

func gidIndex(s *scope) reading {
	if s.now.qp != nil {
		if v, ok := s.now.qp.GIDIndex.Get(); ok {
			return is(v, s.name())
		}
	}
	if a := s.app(); a != nil {
		if name, ok := a.Device.Get(); ok && s.now.dev != nil && name != s.now.dev.Name {
			return none("", "the program uses %s", name)
		}
		for _, name := range gidIndexNames {
			if n, err := strconv.Atoi(a.Env[name]); err == nil && n >= 0 {
				return is(n, "environment: "+name)
			}
		}
		if v, ok := a.GIDIndex.Get(); ok {
			return is(v, "the program")
		}
	}
	if s.now.qp == nil {
		if r, ok := ofQPs(s, "GID indexes", func(q *snapshot.QP) snapshot.Value[int] { return q.GIDIndex }); ok {
			return r
		}
	}
	return none("", "no GID index is known: of a program, its environment or a queue pair")
}

// ofQPs is what the connected queue pairs of a port say, in one voice; ok is false where
// none says anything.
func ofQPs(s *scope, what string, get func(*snapshot.QP) snapshot.Value[int]) (r reading, ok bool) {
	first, n, all := qpValues(s, get)
	switch {
	case n == 0:
		return r, false
	case len(all) > 1:
		return none("", "queue pairs of %s use different %s: %s", s.name(), what, format(all)), true
	}
	return is(all[0], fmt.Sprintf("%s QP %d", s.now.dev.Name, first)), true
}

// qpValues are the different values of the queue pairs of a port, the number of the
// first that has one, and how many have.
func qpValues(s *scope, get func(*snapshot.QP) snapshot.Value[int]) (first uint32, n int, all []any) {
	if s.now.dev == nil {
		return 0, 0, nil
	}
	qps, _ := s.now.dev.QPs.Get()
	for i := range qps {
		v, ok := get(&qps[i]).Get()
		if !ok || s.now.port != nil && qps[i].Port != 0 && qps[i].Port != s.now.port.Number {
			continue
		}
		if n == 0 {
			first = qps[i].LQPN
		}
		if n++; len(all) <= maxNamed && !slices.Contains(all, any(v)) {
			all = append(all, v)
		}
	}
	return first, n, all
}

func mixed(get func(*snapshot.QP) snapshot.Value[int]) func(*scope) reading {
	return func(s *scope) reading {
		if s.now.port == nil {
			return none("", "no RDMA port on it")
		}
		_, n, all := qpValues(s, get)
		if n == 0 {
			return none("", "no queue pair of %s tells it", s.now.dev.Name)
		}
		return is(len(all) > 1, s.now.dev.Name+" queue pairs")
	}
}

// chosenGID is the row of the GID table in use; nil with a reading if there is none.
func chosenGID(s *scope) (*snapshot.GID, reading) {
	if s.now.port == nil {
		return nil, none("", "no RDMA port on it")
	}
	r := gidIndex(s)
	n, ok := r.value.(int)
	if !ok {
		return nil, r
	}
	place := portPath(s, "gids/"+strconv.Itoa(n))
	for i := range s.now.port.GIDs {
		if s.now.port.GIDs[i].Index == n {
			return &s.now.port.GIDs[i], reading{place: place}
		}
	}
	return nil, reading{place: place}
}

func gidRow(get func(*snapshot.GID) snapshot.Value[string]) func(*scope) reading {
	return func(s *scope) reading {
		g, r := chosenGID(s)
		switch {
		case g != nil:
			return val(get(g), r.place)
		case r.why != "":
			return r
		case len(s.now.port.GIDs) == 0:
			return none(r.place, "the GID table was not recorded, or is empty")
		}
		return none(r.place, "the row was not recorded, or is empty")
	}
}

func gidScope(s *scope) reading {
	g, r := chosenGID(s)
	switch {
	case g != nil:
		return is(scopeOf(g.GID), r.place)
	case r.why != "":
		return r
	case !s.now.port.GIDSlots.IsKnown():
		return none(r.place, "the row was not recorded, or is empty")
	}
	return is("empty", r.place)
}

// scopeOf is how far a GID reaches.
func scopeOf(gid string) string {
	a, err := netip.ParseAddr(gid)
	switch {
	case err != nil || a == netip.IPv6Unspecified():
		return "empty"
	case a.Is4In6():
		return "ipv4"
	case a.IsLinkLocalUnicast():
		return "link-local"
	}
	return "global"
}

func routableV2(p *snapshot.Port) (v4, v6 []int) {
	for i := range p.GIDs {
		g := &p.GIDs[i]
		if g.Type.Or("") != "RoCE v2" {
			continue
		}
		switch scopeOf(g.GID) {
		case "ipv4":
			v4 = append(v4, g.Index)
		case "global":
			v6 = append(v6, g.Index)
		}
	}
	return v4, v6
}

func bestGID(s *scope) reading {
	if s.now.port == nil {
		return none("", "no RDMA port on it")
	}
	v4, v6 := routableV2(s.now.port)
	if all := append(v4, v6...); len(all) > 0 {
		return is(all[0], portPath(s, "gid_attrs/types"))
	}
	return none(portPath(s, "gids"), "no RoCE v2 GID with an IPv4 or global address is known")
}

func gidV2(s *scope) reading {
	if s.now.port == nil {
		return none("", "no RDMA port on it")
	}
	v4, v6 := routableV2(s.now.port)
	if len(s.now.port.GIDs) == 0 && !s.now.port.GIDSlots.IsKnown() {
		return none(portPath(s, "gids"), "the GID table was not recorded")
	}
	n := len(v4) + len(v6)
	for i := range s.now.port.GIDs {
		g := &s.now.port.GIDs[i]
		if reach := scopeOf(g.GID); n == 0 && !g.Type.IsKnown() && (reach == "ipv4" || reach == "global") {
			return none(portPath(s, "gid_attrs/types"), "the type of GID %d: %s", g.Index, g.Type.Why())
		}
	}
	return is(n, portPath(s, "gids"))
}

func gidCount(s *scope) reading {
	if s.now.port == nil {
		return none("", "no RDMA port on it")
	}
	if len(s.now.port.GIDs) == 0 && !s.now.port.GIDSlots.IsKnown() {
		return none(portPath(s, "gids"), "the GID table was not recorded")
	}
	return is(len(s.now.port.GIDs), portPath(s, "gids"))
}

func peerOtherNet(s *scope) reading {
	a := s.app()
	if a == nil {
		return noApp()
	}
	peer, err := netip.ParseAddr(a.Peer.Or(""))
	if err != nil {
		return none("", "the address of the far end is not known")
	}
	own := prefixes(s.now.net)
	if len(own) == 0 {
		return none("ip addr", "the addresses of the interface are not known")
	}
	for _, p := range own {
		if p.Masked().Contains(peer) {
			return is(false, "ip addr")
		}
	}
	return is(true, "ip addr")
}
