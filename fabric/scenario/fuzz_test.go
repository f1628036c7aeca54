package scenario

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// oneLineError says whether an error is one of this package's: one line with a place.
func oneLineError(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || strings.ContainsAny(err.Error(), "\n\r") || len(err.Error()) > 2000 {
		t.Errorf("%T %q", err, err)
	}
}

// Any file is refused in one line, or means what its effective form means.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/everything.yaml", "testdata/cross-subnet.yaml", "testdata/ring.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "ecn.kmin=8KB")
	}
	f.Add([]byte("a: &a [*a]\n<<: *a"), "workload.0.x=[")
	f.Add([]byte("? {a: 1}\n: !x |\n - "), "x=")
	f.Add([]byte("%YAML 1.2\n---\nname: \"\\x41\"\n..."), "switches.leaf1.trust=pcp")
	f.Fuzz(func(t *testing.T, data []byte, set string) {
		if _, err := ParseSet("f", data, []string{set}); err != nil {
			oneLineError(t, err)
		}
		s, err := Parse("f", data)
		if err != nil {
			oneLineError(t, err)
			return
		}
		text := s.YAML()
		again, err := Parse("effective", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(s, again, sameScenario); diff != "" {
			t.Errorf("%s\n%s", diff, text)
		}
		tp := &s.Topology
		if tp.Kind == FromFile || tp.Hosts*tp.NICs > 500 || tp.Left+tp.Right > 500 || tp.Switches*tp.HostsPerSwitch > 500 || tp.K > 8 ||
			tp.Leaves*(tp.HostsPerLeaf*tp.NICs+tp.Spines*tp.UplinksPerSpine) > 2000 || tp.Units*tp.HostsPerUnit*tp.NICs > 500 ||
			tp.Pods*tp.LeavesPerPod*(tp.HostsPerLeaf*tp.NICs+tp.AggsPerPod*tp.UplinksPerAgg) > 2000 || tp.Cores*tp.Pods*tp.LinksPerCore > 2000 ||
			tp.Spines*tp.Units*tp.NICs*tp.UplinksPerSpine > 2000 {
			return
		}
		for i := range tp.Links {
			if tp.Links[i].Count > 50 {
				return
			}
		}
		g, err := s.Graph(nil)
		if err != nil {
			oneLineError(t, err)
			return
		}
		if err := s.Check(g); err != nil {
			oneLineError(t, err)
			return
		}
		for _, w := range s.Lint(g) {
			if strings.ContainsAny(w.String(), "\n\r") {
				t.Errorf("%q", w)
			}
		}
	})
}

func FuzzReadHPCC(f *testing.F) {
	f.Add([]byte(hpccConfig))
	f.Add([]byte("TOPOLOGY_FILE a\nFLOW_FILE \"\nKMAX_MAP 1 1 1\nKMIN_MAP 1 1 1\nPMAX_MAP 1 1 1\nEWMA_GAIN 1/3"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, _, err := ReadHPCC("f", data)
		if err != nil {
			oneLineError(t, err)
			return
		}
		if _, err := Parse("f", s.YAML()); err != nil {
			t.Errorf("%v\n%s", err, s.YAML())
		}
	})
}

// What is read of any tables is written back the same.
func FuzzReadSONiC(f *testing.F) {
	data, err := os.ReadFile("testdata/config_db.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"QUEUE": {"a,b|0-7": {"wred_profile": "w", "scheduler": "s"}}, "WRED_PROFILE": {"w": {"ecn": "ecn_all", "green_min_threshold": "1", "green_max_threshold": "2"}}, "SCHEDULER": {"s": {}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ReadSONiC("f", data)
		if err != nil {
			oneLineError(t, err)
			return
		}
		sw, _, err := c.Switch(Default().Switch)
		if err != nil {
			oneLineError(t, err)
			return
		}
		var a, b bytes.Buffer
		if err := c.Write(&a); err != nil {
			t.Fatal(err)
		}
		if _, err := c.SetSwitch(&sw); err != nil {
			t.Fatal(err)
		}
		if err := c.Write(&b); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%v %s", err, cmp.Diff(a.String(), b.String()))
		}
		sw.ECN.KMin, sw.ECN.KMax, sw.Scheduler.Weights[2], sw.DSCPMap[7] = 5, 6, 17, 3
		if _, err := c.SetSwitch(&sw); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Switch(Default().Switch); err != nil {
			t.Errorf("unreadable after a change: %v", err)
		}
	})
}
