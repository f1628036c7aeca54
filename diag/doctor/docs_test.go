package doctor_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/diag/doctor"
)

var update = flag.Bool("update", false, "write docs/rules.md")

// docs/rules.md says what the rules say.
func TestDocs(t *testing.T) {
	name := filepath.Join("..", "..", "docs", "rules.md")
	want := doctor.Markdown(builtin(t))
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(have)); d != "" {
		t.Errorf("docs/rules.md is old; go test ./diag/doctor -run TestDocs -update:\n%s", d)
	}
}
