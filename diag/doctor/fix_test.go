package doctor_test

import (
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// ways are words that belong to one family of drivers, and to no other's fixes.
var ways = map[string][]string{
	"mlx5":    {"mlnx_qos", "/ecn/roce_", "mlx5", "np_cnp_", "rp_cnp_", "np_ecn_"},
	"bnxt_re": {"bnxt", "niccli"},
	"irdma":   {"irdma", "fw-lldp-agent", "cnpSent", "cnpHandled"},
	"efa":     {"EFA"},
	"rxe":     {"rdma_rxe"},
	"siw":     {"siw"},
	"verbena": {"verbs.Config"},
}

// as makes the good host's devices those of another driver.
func as(w *world, family string) {
	kind := map[string]snapshot.Kind{"rxe": snapshot.RXE, "siw": snapshot.SIW, "verbena": snapshot.Verbena}[family]
	driver := map[string]string{"mlx5": "mlx5_core", "bnxt_re": "bnxt_en", "irdma": "ice", "rxe": "rdma_rxe", "verbena": "verbena"}[family]
	if driver == "" {
		driver = family
	}
	if kind == "" {
		kind = snapshot.Hardware
	}
	for _, h := range []*snapshot.Snapshot{w.before, w.after} {
		for i := range h.Devices {
			h.Devices[i].Kind, h.Devices[i].Driver = kind, snapshot.Known(driver)
		}
	}
}

// No fix and no way to verify names a path or tool of another vendor's driver. The
// device's own name is taken out first, for the good host's are called mlx5_N.
func TestFixesFitTheDriver(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	seen := map[string]int{}
	for i := range rows {
		row := &rows[i]
		r := row.find(rules)
		if r == nil || r.ID == "P01" { // no device, and so no driver: it names the modules of all
			continue
		}
		for family := range ways {
			w := newWorld()
			row.set(w, row.at)
			as(w, family)
			f := judge(w, r)
			if f.Status == doctor.Skip || f.Status == doctor.Pass || f.Status == "none" {
				continue
			}
			seen[family]++
			if len(f.Fix) == 0 {
				t.Errorf("row %d, %s has no fix for %s", i, row.rule, family)
			}
			for _, line := range append(f.Fix, f.Verify) {
				line = strings.NewReplacer("mlx5_0", "DEV", "mlx5_1", "DEV", "mlx5_2", "DEV").Replace(line)
				for other, words := range ways {
					for _, word := range words {
						// Our own devices count under the names of mlx5.
						own := family == "verbena" && other == "mlx5" && strings.Contains(word, "_cnp_")
						if other != family && !own && strings.Contains(line, word) {
							t.Errorf("row %d, %s for %s names %s of %s: %s", i, row.rule, family, word, other, line)
						}
					}
				}
			}
		}
	}
	for family := range ways {
		if seen[family] < 15 {
			t.Errorf("%s: only %d findings looked at", family, seen[family])
		}
	}
}

// A fix for a driver that there is not is refused.
func TestBadFixes(t *testing.T) {
	for _, c := range []struct{ new, want string }{
		{"fix: [{mlx9: x}]", `fix for the driver "mlx9", must be one of mlx5, `},
		{"fix: ['']", "an empty fix"},
		{"fix: [{mlx5: '${port.nam}'}]", "no fact is called port.nam"},
	} {
		_, err := doctor.Parse("bad.yaml", []byte(strings.Replace(goodRule, "fix: ['true']", c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", c.new, err, c.want)
		}
	}
}

// Bonds and VLANs that were not read whole are not judged.
func TestPathsNotRead(t *testing.T) {
	for _, c := range []struct {
		rule string
		set  func(*world)
	}{
		{"N10", func(w *world) { w.net().Index = snapshot.Value[int]{} }},
		{"N10", func(w *world) {
			bonded(w, "802.3ad", "layer2")
			w.after.Netdevs[1].Bond.Mode = snapshot.Value[string]{}
		}},
		{"N10", func(w *world) { bonded(w, "active-backup", "layer2"); w.noBefore = true }},
		{"L24", func(w *world) { w.after.Switch.Ports[0].Attrs = nil }},
		{"C23", func(w *world) { w.noBefore = true }},
		{"C23", func(w *world) { w.port().HWCounters, w.port().Counters = nil, nil }},
	} {
		w := newWorld()
		c.set(w)
		r := (&row{rule: c.rule}).find(builtin(t))
		if f := judge(w, r); f.Status != doctor.Skip || f.Missing == "" {
			t.Errorf("%s: %s %s", c.rule, f.Status, f.Missing)
		}
	}
}
