package dcqcn

import "testing"

func TestPresets(t *testing.T) {
	for _, name := range Presets() {
		p, err := Preset(name)
		if err != nil || p.Name != name {
			t.Fatal(name, err)
		}
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		var r RP
		r.Start(0, &p, 100*giga)
		r.Congestion(0)
		if got := r.Rate(10_000); got >= 100*giga {
			t.Errorf("%s: no cut: %d", name, got)
		}
		if got := r.Rate(1_000_000_000_000); got != 100*giga {
			t.Errorf("%s: no recovery: %d", name, got)
		}
	}
}
