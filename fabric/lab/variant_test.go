package lab

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/scenario"
)

// Every variant is a scenario, and another one than what it is a variant of.
func TestVariants(t *testing.T) {
	n := 0
	for _, name := range Names() {
		file, text, err := Source(name)
		if err != nil {
			t.Fatal(err)
		}
		base, err := scenario.Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range Variants(name) {
			n++
			sc, err := scenario.ParseSet(file, text, v.Sets)
			switch {
			case err != nil:
				t.Errorf("%s, %s: %v", name, v.Name, err)
			case string(sc.YAML()) == string(base.YAML()):
				t.Errorf("%s, %s changes nothing", name, v.Name)
			case v.Name == "" || v.Says == "":
				t.Errorf("%s: variant %q says nothing: %q", name, v.Name, v.Says)
			}
		}
	}
	if n == 0 {
		t.Error("no scenario has a variant")
	}
}
