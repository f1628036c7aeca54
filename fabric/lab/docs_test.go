package lab

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/fabric/scenario"
)

var update = flag.Bool("update", false, "write docs/scenarios.md")

const docsFile = "../../docs/scenarios.md"

// docs/scenarios.md is the library in words.
func TestDocs(t *testing.T) {
	var b bytes.Buffer
	catalogue(t, &b)
	if *update {
		if err := os.WriteFile(docsFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	old, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(old), b.String()); diff != "" {
		t.Errorf("docs/scenarios.md is not what the library says (go test ./fabric/lab -run TestDocs -update):\n%s", diff)
	}
}

const docsHead = `# The library of scenarios

Each teaches one thing. %[1]sverbena sim list%[1]s names them, %[1]sverbena sim show NAME%[1]s prints the file to start your own from,
%[1]sverbena sim run NAME%[1]s runs one, says why it went as it did, and shows its variants beside it; %[1]s--set key=value%[1]s changes
anything. All of them together take less than half a minute.

The numbers that a scenario must show are worked out before it runs: from a formula, a standard, or a publication, which stands
beside each. They are never what the simulator has said. A test holds every scenario and variant to them, to the rules that
all runs keep, and to the cause that the explanation must find. Formulas are in [theory.md](theory.md); keys of the files in
[scenario.md](scenario.md).

This file is written from the library by %[1]sgo test ./fabric/lab -run TestDocs -update%[1]s.

`

func catalogue(t *testing.T, b *bytes.Buffer) {
	fmt.Fprintf(b, docsHead, "`")
	b.WriteString("| scenario | lesson |\n|---|---|\n")
	for _, name := range Names() {
		fmt.Fprintf(b, "| [%s](#%s) | %s |\n", name, name, cell(parse(t, name, nil).Title))
	}
	for _, name := range Names() {
		sc := parse(t, name, nil)
		fmt.Fprintf(b, "\n## %s\n\n**%s.**\n\n%s\n", name, text(sc.Title), wrap(text(sc.Teaches)))
		expectations(b, sc.Expect)
		for _, v := range Variants(name) {
			fmt.Fprintf(b, "\n*%s*: %s.\n\n```\nverbena sim run %s%s\n```\n", v.Name, text(v.Says), name, flags(v.Sets))
			expectations(b, parse(t, name, v.All()).Expect)
		}
	}
}

func expectations(b *bytes.Buffer, list []scenario.Expect) {
	b.WriteString("\n| what | must be | because |\n|---|---|---|\n")
	for i := range list {
		e := &list[i]
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", e.What, cell(boundText(e)), cell(e.Source))
	}
}

// flags writes overrides as a shell takes them.
func flags(sets []string) string {
	var b strings.Builder
	for _, s := range sets {
		if strings.ContainsAny(s, " []{}*%") {
			s = "'" + s + "'"
		}
		b.WriteString(" --set " + s)
	}
	return b.String()
}

// text keeps Markdown from reading more into a sentence than there is.
func text(s string) string {
	return strings.NewReplacer("*", `\*`, "_", `\_`, "<", "&lt;").Replace(s)
}

func cell(s string) string { return strings.ReplaceAll(text(s), "|", `\|`) }

// wrap fills lines of up to 128 bytes.
func wrap(s string) string {
	var b strings.Builder
	n := 0
	for _, w := range strings.Fields(s) {
		switch {
		case n == 0:
		case n+1+len(w) > 128:
			b.WriteByte('\n')
			n = 0
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(w)
		n += len(w)
	}
	return b.String()
}
