package read_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// large is a host with 16 devices of 256 GID slots, 60 counters and 625 queue pairs
// each, and the directories ready.
func large(t testing.TB) source16 {
	t.Helper()
	m := memory{}
	known := snapshot.Known[uint32]
	qps := make([]snapshot.QP, 625)
	for i := range qps {
		qps[i] = snapshot.QP{
			Port: 1, LQPN: uint32(i), RQPN: known(uint32(i)), Type: "RC", State: "RTS", RQPSN: known(1), SQPSN: known(2),
			PathMig: snapshot.Known("MIGRATED"), PDN: known(3), PID: snapshot.Known(i), Comm: "python3",
		}
	}
	b, err := json.Marshal(qps)
	if err != nil {
		t.Fatal(err)
	}
	for d := range 16 {
		name := fmt.Sprintf("mlx5_%d", d)
		dir := "sys/class/infiniband/" + name + "/"
		m[dir+"node_type"], m[dir+"fw_ver"] = "1: CA\n", "22.38.1900\n"
		port := dir + "ports/1/"
		m[port+"state"], m[port+"link_layer"], m[port+"rate"] = "4: ACTIVE\n", "Ethernet\n", "100 Gb/sec (4X EDR)\n"
		for i := range 256 {
			m[port+fmt.Sprintf("gids/%d", i)] = fmt.Sprintf("0000:0000:0000:0000:0000:ffff:0a00:%04x\n", i+1)
			m[port+fmt.Sprintf("gid_attrs/types/%d", i)] = "RoCE v2\n"
			m[port+fmt.Sprintf("gid_attrs/ndevs/%d", i)] = "eth0\n"
		}
		for i := range 60 {
			m[port+fmt.Sprintf("hw_counters/c%d", i)] = "123456789\n"
		}
		m["nl/rdma/res/qp/"+name] = string(b)
	}
	s := source16{m, map[string][]string{}}
	seen := map[string]bool{}
	for k := range m {
		for i := strings.LastIndexByte(k, '/'); i > 0; i = strings.LastIndexByte(k, '/') {
			if !seen[k] {
				seen[k] = true
				s.dirs[k[:i]] = append(s.dirs[k[:i]], k[i+1:])
			}
			k = k[:i]
		}
	}
	return s
}

type source16 struct {
	memory
	dirs map[string][]string
}

func (s source16) ReadDir(name string) ([]string, error) {
	if d, ok := s.dirs[name]; ok {
		return d, nil
	}
	return s.memory.ReadDir("nothing")
}

// A host with 16 devices and 10,000 queue pairs takes less than 100 MB in all.
func TestLargeHostIsBounded(t *testing.T) {
	m := large(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := read.Host(m, read.Options{})
	runtime.ReadMemStats(&after)
	n := 0
	for _, d := range s.Devices {
		n += len(d.QPs.Or(nil))
		if len(d.Ports[0].GIDs) != 256 || len(d.Ports[0].HWCounters) != 60 {
			t.Fatalf("%s has %d GIDs and %d counters", d.Name, len(d.Ports[0].GIDs), len(d.Ports[0].HWCounters))
		}
	}
	if n != 10_000 || len(s.Problems) != 0 {
		t.Errorf("%d queue pairs, problems %q", n, problems(s))
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 100<<20 {
		t.Errorf("allocated %d bytes in all", got)
	}
}

// An answer of the smallest objects is cut, whatever it would become in memory.
func TestHostileAnswersAreBounded(t *testing.T) {
	for _, query := range []string{"rdma/res/qp/a", "nft", "ethtool/e/stats"} {
		t.Run(query, func(t *testing.T) {
			m := memory{
				"sys/class/infiniband/a/node_type": "1: CA\n", "sys/class/net/e/mtu": "1500\n",
				"nl/" + query: "[" + strings.Repeat("{},", 8<<20) + "{}]",
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s := read.Host(m, read.Options{})
			runtime.ReadMemStats(&after)
			if len(s.Problems) != 1 {
				t.Errorf("problems %q", problems(s))
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 600<<20 {
				t.Errorf("allocated %d bytes in all", got)
			}
		})
	}
}

func BenchmarkHost16Devices10000QPs(b *testing.B) {
	m := large(b)
	b.ReportAllocs()
	for b.Loop() {
		read.Host(m, read.Options{})
	}
}
