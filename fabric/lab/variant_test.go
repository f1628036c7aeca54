package lab

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/scenario"
)

// Every variant is a scenario, and another one than what it is a variant of.
func TestVariants(t *testing.T) {
	n := 0
	for _, name := range Names() {
		base := parse(t, name, nil)
		file, text, err := Source(name)
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
			if sc, err = scenario.ParseSet(file, text, v.All()); err != nil {
				t.Errorf("%s, %s: %v", name, v.Name, err)
			} else if len(sc.Expect) == 0 || strings.Count(v.Expect, `"what"`) != len(sc.Expect) {
				t.Errorf("%s, %s: of %s come %d expectations", name, v.Name, v.Expect, len(sc.Expect))
			}
		}
	}
	if n == 0 {
		t.Error("no scenario has a variant")
	}
}

// No file is there for nothing, and all can be read.
func TestVariantFiles(t *testing.T) {
	entries, err := fs.ReadDir(variants, "variants")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, _ := strings.CutSuffix(e.Name(), ".yaml")
		if !slices.Contains(Names(), name) {
			t.Errorf("%s is of no scenario", e.Name())
		}
		text, err := variants.ReadFile("variants/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if list, err := readVariants(text); err != nil || len(list) == 0 {
			t.Errorf("%s: %d variants, %v", e.Name(), len(list), err)
		}
	}
	if _, err := readVariants([]byte("- {name: x, sets: [a=b]}")); err == nil {
		t.Error("an unknown key is taken")
	}
	if Variants("no such scenario") != nil {
		t.Error("a scenario that there is not has variants")
	}
}
