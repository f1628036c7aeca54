package play

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/lab"
	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/internal/need"
)

// put writes a file into a directory of the test.
func put(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFindKnowsFilesByWhatIsInThem(t *testing.T) {
	var saved bytes.Buffer
	if err := report.WriteJSON(&saved, &result.Run{Name: "x"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text string
		kind       Kind
	}{
		{"a.yaml", "topology: {kind: star}\n", Scenario},
		{"b.yaml", "# a remark\n\nname: x\n", Scenario},
		{"json.yaml", `{"topology": {"kind": "star"}}`, Scenario},
		{"braces.yaml", "{}", Scenario},
		{"bom.yaml", "\ufeffname: x\r\n", Scenario},
		{"config.txt", "ENABLE_QCN 1\n", HPCC},
		{"config2.txt", "\n# remark\nKMAX_MAP\t1 100000000000 400\n", HPCC},
		{"upper.yaml", "NAME: x\n", Scenario}, // a wrong key of ours, not HPCC's
		{"config_db.json", `{"PORT": {}, "BUFFER_PROFILE": {}}`, Tables},
		{"pretty.json", "\n {\n  \"WRED_PROFILE\": {}\n}", Tables},
		{"run.json", saved.String(), Saved},
	} {
		s, err := Find(put(t, c.name, c.text))
		if err != nil || s.Kind != c.kind || s.Library() {
			t.Errorf("%s: %+v, %v; want kind %d", c.name, s, err, c.kind)
		}
	}
}

// What is no text, or nothing, is refused whoever asks: sim show would print it.
func TestFindRefusesWhatIsNoText(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"":                                      ":1:1: there is nothing in the file",
		"\n\n":                                  ":1:1: there is nothing in the file",
		"# a remark\n---\n  # more\n":           ":1:1: there is nothing in the file",
		"\x7fELF\x02\x01\x01\x00":               ":1:8: a zero byte: not a text file",
		"name: x\nseed: \x001":                  ":2:7: a zero byte: not a text file",
		"name: x\n\xff\xfe":                     ":2:1: byte 0xff: not UTF-8 text",
		"\x7fELF":                               ":1:1: control character 0x7f: not a text file",
		"name: \x1b[31mred":                     ":1:7: control character 0x1b: not a text file",
		strings.Repeat("#", scenario.MaxFile+1): ": more than 16777216 bytes",
	} {
		file := filepath.Join(dir, "f.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Find(file); err == nil || !strings.HasPrefix(err.Error(), file+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}

func TestFindPrefersTheLibrary(t *testing.T) {
	name := lab.Names()[0]
	t.Chdir(t.TempDir())
	if err := os.WriteFile(name, []byte("title: mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Find(name); err != nil || !s.Library() {
		t.Errorf("%s: %+v, %v", name, s, err)
	}
	if s, err := Find("./" + name); err != nil || s.Library() {
		t.Errorf("./%s: %+v, %v", name, s, err)
	}
}

func TestFindErrorsAreOneLine(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		"cross-subnet-enc":            "did you mean cross-subnet-ecn?",
		"zzz":                         "verbena sim list",
		"":                            "no scenario",
		dir:                           "is a directory",
		filepath.Join(dir, "no.yaml"): "no.yaml",
		put(t, "half.json", `{"format":"verbena-run", "version": 1, "run": {`):            "half.json:",
		put(t, "bad.json", `{"format":"verbena-run", "version": 1, "run": {"seed": []}}`): "bad.json:1:",
	} {
		_, err := Find(name)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v; want %q", name, err, want)
		}
	}
}

// A file that does not end is refused by its size, not read.
func TestFindReadsNoMoreThanAScenarioHas(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		need.Missing(t, "needs /dev/zero: %v", err)
	}
	if _, err := Find("/dev/zero"); err == nil || !strings.Contains(err.Error(), "more than 16777216 bytes") {
		t.Error(err)
	}
}
