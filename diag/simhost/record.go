package simhost

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo"
)

// epoch is when every run begins: recordings of equal runs are equal.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// answers is a node at one instant as a source of answers; it has no files.
type answers map[string]any

func (answers) Origin() snapshot.Origin          { return snapshot.Simulated }
func (answers) ReadFile(string) ([]byte, error)  { return nil, source.ErrNoEntry }
func (answers) ReadDir(string) ([]string, error) { return nil, source.ErrNoEntry }
func (answers) ReadLink(string) (string, error)  { return "", source.ErrNoEntry }
func (a answers) Ask(query string) ([]byte, error) {
	v, ok := a[query]
	if !ok {
		return nil, source.ErrNoEntry
	}
	return json.Marshal(v)
}

// node describes a node. A host has beside itself the switch that it hangs on.
func (v *view) node(node int32) answers {
	n := &v.r.Nodes[node]
	at := epoch
	if v.end {
		at = at.Add(time.Duration(v.r.End / sim.Nanosecond))
	}
	a := answers{source.QueryMeta: source.Meta{Version: source.MetaVersion, Taken: []time.Time{at}, Host: n.Name}}
	if n.Switch {
		a[source.QuerySwitch] = v.sw(node)
		return a
	}
	var devices []snapshot.Device
	var netdevs []snapshot.Netdev
	addrs := map[string][]snapshot.Address{}
	for i := range n.Ports {
		i := int32(i)
		d, nd := v.device(node, i), v.netdev(node, i)
		devices, netdevs = append(devices, d), append(netdevs, nd)
		addr := v.g.Endpoints[v.g.Nodes[node].Endpoint+i].Addr
		addrs[nd.Name] = []snapshot.Address{{Prefix: fmt.Sprintf("%v/%d", addr, addr.BitLen())}}
		a[fmt.Sprintf(source.QueryEthtool, nd.Name)] = v.ethtool(node, i)
		a[fmt.Sprintf(source.QueryDCB, nd.Name)] = v.dcb(node, i)
		if peer := n.Ports[i].Peer; i == 0 && v.r.Nodes[peer].Switch {
			a[source.QuerySwitch] = v.sw(peer)
		}
	}
	a[source.QueryVerbena], a[source.QueryNetdevs], a[source.QueryAddresses] = devices, netdevs, addrs
	return a
}

// Window returns a node of a run, by its place in r.Nodes, at the beginning and at the
// end. sc and g are those that the run was made of.
func Window(sc *scenario.Scenario, g *topo.Graph, r *result.Run, node int32) snapshot.Window {
	before, after := view{sc, g, r, false}, view{sc, g, r, true}
	return snapshot.Window{
		Before: read.Host(before.node(node), read.Options{}),
		After:  read.Host(after.node(node), read.Options{}),
	}
}

// Record writes every host and switch of a run as a recording of two instants, DIR/<name>,
// for diag/source, and returns how many. The directory may exist; those of nodes must
// not, or be empty. The error names the one that cannot be written.
func Record(dir string, sc *scenario.Scenario, g *topo.Graph, r *result.Run) (int, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, err
	}
	for node := range r.Nodes {
		before, after := view{sc, g, r, false}, view{sc, g, r, true}
		src := &turning{now: before.node(int32(node))}
		rec, err := source.NewRecorder(src, filepath.Join(dir, r.Nodes[node].Name))
		if err != nil {
			return node, err
		}
		read.Host(rec, read.Options{})
		src.now = after.node(int32(node))
		rec.Next()
		read.Host(rec, read.Options{})
		if err := rec.Commit(); err != nil {
			return node, err
		}
	}
	return len(r.Nodes), nil
}

// turning is a source that becomes another one.
type turning struct{ now answers }

func (t *turning) Origin() snapshot.Origin               { return snapshot.Simulated }
func (t *turning) ReadFile(name string) ([]byte, error)  { return t.now.ReadFile(name) }
func (t *turning) ReadDir(name string) ([]string, error) { return t.now.ReadDir(name) }
func (t *turning) ReadLink(name string) (string, error)  { return t.now.ReadLink(name) }
func (t *turning) Ask(query string) ([]byte, error)      { return t.now.Ask(query) }
