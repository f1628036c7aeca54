package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/export"
	"github.com/verbena-rdma/verbena/diag/monitor"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// evil steers a terminal, begins a line, turns the direction of text, closes what a page
// or a label has open, and is no UTF-8.
const evil = "x\x1b]0;title\x07\x1b[31m\x9b2J\r\ny\t\x00\x7f\u0085\u009b1m\u202e\u2066\u2028\u200f\xff\"'<script>alert(1)</script>\\"

// evilJSON is evil as a string of JSON: escaped where JSON wants it, else raw.
const evilJSON = `x\u001b]0;title\u0007\u001b[31m` + "\x9b" + `2J\r\ny\t\u0000` + "\x7f\u0085" + `\u009b1m` + "\u202e" + `\u2066` + "\u2028" + `\u200F` + "\u061c\xff" + `\"'<script>alert(1)</script>\\`

// fill is a value of a type as JSON: every string is evil but the names that things are
// found by, every list and map has an entry. With unreadable, readings are not made.
func fill(t reflect.Type, unreadable bool, depth int) string {
	if depth > 12 {
		return "null"
	}
	if get, ok := reflect.PointerTo(t).MethodByName("IsKnown"); ok && get.Type.NumIn() == 1 {
		if unreadable {
			return `{"unreadable":"` + evilJSON + `"}`
		}
		g, _ := t.MethodByName("Get")
		return fill(g.Type.Out(0), unreadable, depth+1)
	}
	switch t.Kind() {
	case reflect.String:
		return `"` + evilJSON + `"`
	case reflect.Bool:
		return "true"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return "1"
	case reflect.Pointer:
		return fill(t.Elem(), unreadable, depth)
	case reflect.Slice:
		return "[" + fill(t.Elem(), unreadable, depth+1) + "]"
	case reflect.Array:
		all := make([]string, t.Len())
		for i := range all {
			all[i] = fill(t.Elem(), unreadable, depth+1)
		}
		return "[" + strings.Join(all, ",") + "]"
	case reflect.Map:
		key := `"` + evilJSON + `"`
		if t.Key().Kind() != reflect.String {
			key = `"1"`
		}
		return "{" + key + ":" + fill(t.Elem(), unreadable, depth+1) + "}"
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return `"2026-01-02T03:04:05Z"`
		}
		var all []string
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || name == "-" {
				continue
			}
			v := fill(f.Type, unreadable, depth+1)
			switch {
			case t == reflect.TypeFor[snapshot.Device]() && f.Name == "Name":
				v = `"mlx5_0"`
			case t == reflect.TypeFor[snapshot.Netdev]() && f.Name == "Name":
				v = `"eth0"`
			case t == reflect.TypeFor[snapshot.Device]() && f.Name == "Ports": // they have a query
				v = "[]"
			}
			all = append(all, `"`+name+`":`+v)
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	return "null"
}

// answersOf are the queries that a reader asks, and the types of their answers.
var answersOf = map[string]reflect.Type{
	"rdma/system": reflect.TypeFor[snapshot.Subsystem](), "rdma/dev": reflect.TypeFor[[]snapshot.Device](),
	"rdma/res/qp/mlx5_0": reflect.TypeFor[[]snapshot.QP](), "rdma/res/cq/mlx5_0": reflect.TypeFor[[]snapshot.CQ](),
	"rdma/res/mr/mlx5_0": reflect.TypeFor[[]snapshot.MR](), "rdma/res/pd/mlx5_0": reflect.TypeFor[[]snapshot.PD](),
	"rdma/res/cm/mlx5_0": reflect.TypeFor[[]snapshot.CMID](), "rdma/res/srq/mlx5_0": reflect.TypeFor[[]snapshot.SRQ](),
	"rdma/res/ctx/mlx5_0": reflect.TypeFor[[]snapshot.Context](), "rdma/stat/mlx5_0": reflect.TypeFor[map[int]snapshot.Counters](),
	"rdma/statmode/mlx5_0": reflect.TypeFor[map[int]snapshot.StatMode](), "rdma/attr/mlx5_0": reflect.TypeFor[source.AttrAnswer](),
	"rdma/chardev":       reflect.TypeFor[[]snapshot.Chardev](),
	"ethtool/eth0/stats": reflect.TypeFor[snapshot.Counters](), "ethtool/eth0/features": reflect.TypeFor[map[string]bool](),
	"ethtool/eth0/rings": reflect.TypeFor[map[string]uint64](), "ethtool/eth0/channels": reflect.TypeFor[map[string]uint64](),
	"ethtool/eth0/pause": reflect.TypeFor[snapshot.Pause](), "ethtool/eth0/driver": reflect.TypeFor[string](),
	"ethtool/eth0/fec": reflect.TypeFor[string](), "ethtool/eth0/hash/udp4": reflect.TypeFor[snapshot.Hash](),
	"dcb/eth0": reflect.TypeFor[snapshot.DCB](), "ip/link": reflect.TypeFor[[]snapshot.Netdev](),
	"ip/route": reflect.TypeFor[[]snapshot.Route](), "ip/rule": reflect.TypeFor[[]snapshot.PolicyRule](),
	"ip/neigh": reflect.TypeFor[[]snapshot.Neighbour](), "nft": reflect.TypeFor[[]snapshot.NFTChain](),
	"iptables": reflect.TypeFor[string](), "ip6tables": reflect.TypeFor[string](),
	"app": reflect.TypeFor[snapshot.App](), "switch": reflect.TypeFor[snapshot.Switch](),
}

// hostileHost is a recording of a host whose every text is evil: answers, files, reasons
// and the names of files.
func hostileHost(t *testing.T, unreadable bool) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, content string) {
		f := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("meta.json", `{"version":1,"taken":["2026-01-02T03:04:05Z","2026-01-02T03:04:15Z"],"host":"`+evilJSON+`"}`)
	for i := range 2 {
		at := fmt.Sprintf("t%d/", i)
		for q, typ := range answersOf {
			put(at+"nl/"+q+".json", fill(typ, unreadable, 0))
		}
		put(at+"nl/rdma/link.json", `{"mlx5_0":`+fill(reflect.TypeFor[[]snapshot.Port](), unreadable, 0)+`}`)
		put(at+"nl/rdma/res.json", `{"mlx5_0":{"qp":3,"`+evilJSON+`":4}}`)
		put(at+"nl/ip/addr.json", `{"eth0":`+fill(reflect.TypeFor[[]snapshot.Address](), unreadable, 0)+`,"`+evilJSON+`":[]}`)
		put(at+"nl/ethtool/eth0/hash/udp6.err", evil)
		dev, net := at+"root/sys/class/infiniband/mlx5_0/", at+"root/sys/class/net/eth0/"
		for _, f := range []string{"node_desc", "fw_ver", "hca_type", "board_id", "hw_rev", "node_guid", "sys_image_guid", "ports/1/rate", "ports/1/link_layer", "ports/1/gid_attrs/types/0", "ports/1/gid_attrs/ndevs/0", "ports/1/counters/a", "tc/1/traffic_class"} {
			put(dev+f, evil+"\n")
		}
		for _, f := range []string{"ports/1/phys_state", "ports/1/lid", "ports/1/counters/b", "ports/1/hw_counters/c"} {
			put(dev+f+".err", evil+"\n")
		}
		put(dev+"node_type", "1: CA\n")
		put(dev+"ports/1/state", "4: ACTIVE "+evil+"\n")
		put(dev+"ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n")
		put(dev+"device.link", "../../../"+evil)
		put(dev+"device/driver.link", "../"+evil)
		for _, f := range []string{"operstate", "duplex", "address", "speed", "mtu", "bonding/mode", "bonding/slaves", "qos/trust", "qos/buffer_size", "statistics/rx_bytes", "ecn/roce_np/x"} {
			put(net+f, evil+"\n")
		}
		put(net+"carrier.err", evil)
		// No name on a disk has a slash or a zero.
		name := strings.NewReplacer("/", "", "\x00", "").Replace(evil)
		put(dev+"ports/1/hw_counters/"+name, "5\n")
		put(at+"root/sys/class/infiniband/"+name+"/node_type", "1: CA\n")
		put(at+"root/sys/class/net/"+name+"/mtu", "1500\n")
		for _, f := range []string{"cmdline", "modules", "sys/kernel/hostname", "sys/kernel/osrelease", "sys/net/core/rmem_max", "net/snmp", "net/snmp6", "net/softnet_stat", "net/unix", "net/vlan/eth0", "sys/net/ipv4/conf/" + name + "/rp_filter"} {
			put(at+"root/proc/"+f, evil+"\n"+evil+" "+evil+": 1\n")
		}
		put(at+"root/sys/kernel/mm/hugepages/"+name+"/nr_hugepages", evil)
	}
	return dir
}

// plain fails if text has what is no text: anything but printable characters, spaces and
// ends of lines.
func plain(t *testing.T, what, text string) {
	t.Helper()
	bad := func(r rune) bool {
		return r == utf8.RuneError || r != '\n' && r != '\t' && !unicode.IsPrint(r)
	}
	if i := strings.IndexFunc(text, bad); i >= 0 {
		t.Errorf("%s prints %q", what, text[max(0, i-60):min(len(text), i+20)])
	}
	if strings.Contains(text, "\ny") {
		i := strings.Index(text, "\ny")
		t.Errorf("%s: a text of a file begins a line: %q", what, text[max(0, i-60):min(len(text), i+20)])
	}
}

// TestHostileText lets every printer print a host whose every text is evil: nothing of
// it steers a terminal, begins a line of its own, or is no UTF-8.
func TestHostileText(t *testing.T) {
	for name, unreadable := range map[string]bool{"readings": false, "unreadable": true} {
		t.Run(name, func(t *testing.T) {
			dir := hostileHost(t, unreadable)
			printed := 0
			for _, args := range [][]string{
				{"devices"},
				{"devinfo", "-v"},
				{"devinfo", "-l"},
				{"ibstat"},
				{"ibstat", "-l"},
				{"ibstat", "-s"},
				{"ibstat", "-p"},
				{"show-gids"},
				{"gid", "show"},
				{"perfquery", "-x"},
				{"perfquery"},
				{"rdma", "dev"},
				{"rdma", "-d", "dev"},
				{"rdma", "-d", "link"},
				{"rdma", "link"},
				{"rdma", "system"},
				{"rdma", "res"},
				{"rdma", "-d", "res", "show", "qp"},
				{"rdma", "-d", "res", "show", "cq"},
				{"rdma", "-d", "res", "show", "mr"},
				{"rdma", "-d", "res", "show", "pd"},
				{"rdma", "-d", "res", "show", "cm_id"},
				{"rdma", "-d", "res", "show", "srq"},
				{"rdma", "-d", "res", "show", "ctx"},
				{"rdma", "statistic"},
				{"rdma", "statistic", "mode"},
				{"rdma", "-j", "-p", "-d", "res", "show", "qp"},
				{"rdma", "-j", "dev"},
				{"rdma", "-j", "link"},
				{"rdma", "-j", "statistic"},
				{"cma-roce-mode", "-d", "mlx5_0"},
				{"nic-stats", "eth0"},
				{"nic-stats", "--all", "eth0"},
				{"pfc", "show", "dev", "eth0"},
				{"pfc", "eth0"},
				{"flow-hash", "udp4", "eth0"},
				{"qos", "-i", "eth0"},
				{"qos", "-i", evil},
				{"top"},
				{"top", "--json"},
				{"doctor"},
				{"doctor", "-v"},
				{"doctor", "--json"},
				{"doctor", "--peer", dir},
				{"devices", "--json"},
				{"devinfo", "--json"},
				{"gid", "--json"},
				{"ibstat", "--json"},
				{evil},
				{"devinfo", "-d", evil},
				{"rdma", "dev", "show", evil},
			} {
				var out, errs bytes.Buffer
				full := append([]string{"verbena", args[0], "--host", dir}, args[1:]...)
				status := run(t.Context(), app{in: strings.NewReader(""), out: &out, err: &errs}, full)
				if out.Len() > 0 {
					printed++
				} else if testing.Verbose() {
					t.Logf("%q: status %d, nothing but %q", args, status, errs.String())
				}
				plain(t, fmt.Sprintf("%q", args), out.String())
				plain(t, fmt.Sprintf("%q (standard error)", args), errs.String())
			}
			if printed < 35 {
				t.Errorf("only %d commands print anything", printed)
			}
			rec, err := source.OpenDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer rec.Close()
			host := func() *snapshot.Snapshot { return read.Host(rec.At(1), read.Options{}) }
			var metrics bytes.Buffer
			if err := export.Text(export.New(host, export.Options{Compat: true, PerQP: 100}), &metrics); err != nil {
				t.Errorf("exporter: %v", err)
			}
			if metrics.Len() < 1000 {
				t.Errorf("the exporter has %d bytes", metrics.Len())
			}
			plain(t, "exporter", metrics.String())
			b, err := json.Marshal(host())
			if err != nil {
				t.Fatal(err)
			}
			plain(t, "the snapshot", string(b))
			hostilePage(t, host)
		})
	}
}

// hostilePage asks the live page for all that it has.
func hostilePage(t *testing.T, host func() *snapshot.Snapshot) {
	t.Helper()
	rules, err := doctor.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	m, err := monitor.New(monitor.Config{
		Hosts: []monitor.Host{{Name: "a", Past: func(int) *snapshot.Snapshot { return host() }, Times: 2}}, Rules: rules,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { m.Run(ctx) })
	defer all.Wait()
	defer stop()
	get := func(url string) string {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
		return w.Body.String()
	}
	plain(t, "page", get("/api/hosts"))
	for range 600 {
		body := get("/api/data?host=a")
		plain(t, "page", body)
		if strings.Contains(body, `"judged":`) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("the doctor of the page never looks")
}
