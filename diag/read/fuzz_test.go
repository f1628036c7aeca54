package read_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// memory is a source in memory: names of files, directories made of them, "nl/query".
type memory map[string]string

func (m memory) ReadFile(name string) ([]byte, error) {
	s, ok := m[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	if why, bad := strings.CutPrefix(s, "!"); bad {
		return nil, errors.New(why)
	}
	return []byte(s), nil
}

func (m memory) ReadDir(name string) ([]string, error) {
	var all []string
	for k := range m {
		if rest, ok := strings.CutPrefix(k, name+"/"); ok {
			head, _, _ := strings.Cut(rest, "/")
			all = append(all, head)
		}
	}
	if all == nil {
		return nil, fs.ErrNotExist
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func (m memory) ReadLink(name string) (string, error) {
	s, err := m.ReadFile(name + ".link")
	return string(s), err
}

func (m memory) Ask(query string) ([]byte, error) { return m.ReadFile("nl/" + query) }

// FuzzHost feeds the readers trees: a line is "name=content". The result marshals to
// JSON and back, and nothing of it can steer a terminal.
func FuzzHost(f *testing.F) {
	trees, err := filepath.Glob("testdata/*.tree")
	if err != nil || len(trees) == 0 {
		f.Fatal("no sample trees", err)
	}
	f.Add("sys/class/infiniband/a/ports/1/state=4: ACTIVE\nnl/rdma/dev=[{\"name\":\"a\"}]\nproc/net/snmp=Udp: A B\\nUdp: 1 x")
	f.Add("nl/app={\"log\":[\"Failed status 12\"]}\nnl/rdma/res/qp/a=[{},{}]\nsys/class/net/e/qos/buffer_size=1,2,x")
	f.Add("proc/net/softnet_stat=zz 1\nsys/class/infiniband/a/ports/1/rate=2.5 Gb/sec (1X SDR)\nsys/class/infiniband/a/tc/1/traffic_class=Global tclass=")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			return
		}
		m := memory{}
		for line := range strings.Lines(text) {
			name, content, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			m[name] = strings.ReplaceAll(content, `\n`, "\n")
		}
		s := read.Host(m, read.Options{})
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back snapshot.Snapshot
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%v in %s", err, b)
		}
		again, err := json.Marshal(&back)
		if err != nil || string(again) != string(b) {
			t.Fatalf("JSON does not come back (%v): %s", err, cmp.Diff(string(b), string(again)))
		}
		for _, p := range s.Problems {
			for _, r := range p.Place + p.Why {
				if unicode.IsControl(r) || r == utf8.RuneError {
					t.Fatalf("control character in %q", p)
				}
			}
		}
	})
}
