package transport

import "testing"

// Every reason has a name of its own, fit for a counter.
func TestDropNames(t *testing.T) {
	seen := map[string]Drop{}
	for d := range NumDrops {
		name := d.String()
		if name == "" {
			t.Errorf("reason %d has no name", d)
		}
		if other, ok := seen[name]; ok {
			t.Errorf("reasons %d and %d are both %q", other, d, name)
		}
		seen[name] = d
		for _, c := range name {
			if c != '_' && (c < 'a' || c > 'z') {
				t.Errorf("%q is no name for a counter", name)
			}
		}
	}
	if NumDrops.String() != "unknown" {
		t.Errorf("no reason is called %q", NumDrops)
	}
}
