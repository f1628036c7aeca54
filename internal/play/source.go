package play

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/verbena-rdma/verbena/fabric/lab"
	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
)

// Kind says what a source is.
type Kind uint8

// The kinds.
const (
	Scenario Kind = iota // a scenario of ours
	HPCC                 // config.txt of HPCC's simulator
	Tables               // config_db.json of a SONiC switch
	Saved                // a run that was saved as JSON
)

// Source is what a name on a command line stands for.
type Source struct {
	Name string // as given
	File string // under which errors speak of it
	Kind Kind
	Text []byte      // of all kinds but Saved
	Run  *result.Run // of Saved

	library bool
	made    bool // Text was made here: places in it say nothing
}

// Find reads what a name stands for: a scenario of the library, else a file. A
// name with a slash or a dot is a file's. Errors are one line.
func Find(name string) (*Source, error) {
	plain := !strings.ContainsAny(name, `/\.`)
	if plain {
		if file, text, err := lab.Source(name); err == nil {
			return &Source{Name: name, File: file, Text: text, library: true}, nil
		}
	}
	s, err := readFile(name)
	if plain && errors.Is(err, fs.ErrNotExist) {
		return nil, unknown(name)
	}
	return s, err
}

// Open is Find for what can only be a file.
func Open(name string) (*Source, error) { return readFile(name) }

// unknown says that a name stands for nothing, and which may be meant.
func unknown(name string) error {
	best, most := "", 0
	for _, n := range lab.Names() {
		if k := alike(n, name); k > most {
			best, most = n, k
		}
	}
	if best != "" && 2*most > len(name) {
		return fmt.Errorf("there is no scenario %q in the library, and no file of that name; did you mean %s?", name, best)
	}
	return fmt.Errorf("there is no scenario %q in the library, and no file of that name; verbena sim list shows the library", name)
}

// alike counts the bytes in which two names begin or end alike.
func alike(a, b string) int {
	n := min(len(a), len(b))
	head, tail := 0, 0
	for head < n && a[head] == b[head] {
		head++
	}
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head + tail
}

// headBytes is enough of a file to see what it is.
const headBytes = 4096

func readFile(name string) (*Source, error) {
	f, err := openFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, headBytes)
	head, err := r.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	s := &Source{Name: name, File: name}
	if isSaved(head) {
		s.Kind = Saved
		if s.Run, err = report.ReadJSON(r); err != nil {
			return nil, fmt.Errorf("%s:%w", name, err)
		}
		return s, nil
	}
	if s.Text, err = io.ReadAll(io.LimitReader(r, scenario.MaxFile+1)); err != nil {
		return nil, err
	}
	if err := isText(name, s.Text); err != nil {
		return nil, err
	}
	switch {
	case isTables(s.Text):
		s.Kind = Tables
	case isHPCC(s.Text):
		s.Kind = HPCC
	}
	return s, nil
}

// isText refuses what nobody has written as a scenario: programs, captures, pictures,
// which would reach a terminal otherwise, and files that are empty, as a disk that was
// full or a variable of a script leaves them.
func isText(name string, text []byte) error {
	if len(text) > scenario.MaxFile {
		return fmt.Errorf("%s: more than %d bytes; traces belong in files of their own", name, scenario.MaxFile)
	}
	blank, line := true, 0
	for l := range bytes.Lines(text) {
		line++
		if i := bytes.IndexByte(l, 0); i >= 0 {
			return fmt.Errorf("%s:%d:%d: a zero byte: not a text file", name, line, i+1)
		}
		for i := 0; i < len(l); {
			r, n := utf8.DecodeRune(l[i:])
			if r == utf8.RuneError && n == 1 {
				return fmt.Errorf("%s:%d:%d: byte 0x%02x: not UTF-8 text", name, line, i+1, l[i])
			}
			if r < ' ' && !strings.ContainsRune("\t\r\n\f", r) || r == 0x7f {
				return fmt.Errorf("%s:%d:%d: control character 0x%02x: not a text file", name, line, i+1, r)
			}
			i += n
		}
		l = bytes.TrimSpace(l)
		blank = blank && (len(l) == 0 || l[0] == '#' || string(l) == "---")
	}
	if blank {
		return fmt.Errorf("%s:1:1: there is nothing in the file; verbena sim show NAME prints a scenario of the library to begin with", name)
	}
	return nil
}

// isSaved reports whether a file begins like what report.WriteJSON writes.
func isSaved(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	return bytes.HasPrefix(head, []byte("{")) && bytes.Contains(head, []byte(`"verbena-run"`))
}

// isTables reports whether a text is JSON with tables of a switch.
func isTables(text []byte) bool {
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		return false
	}
	return slices.ContainsFunc([]string{
		"BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG", "PORT_QOS_MAP", "DSCP_TO_TC_MAP", "WRED_PROFILE", "PFC_WD", "CABLE_LENGTH", "SCHEDULER", "TC_TO_QUEUE_MAP",
	}, func(table string) bool { return bytes.Contains(text, []byte(`"`+table+`"`)) })
}

// isHPCC reports whether the first line that says something is KEY VALUE.
func isHPCC(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		key, rest, _ := bytes.Cut(line, []byte(" "))
		if k, r, ok := bytes.Cut(line, []byte("\t")); ok && len(k) < len(key) {
			key, rest = k, r
		}
		return len(rest) > 0 && len(key) > 2 && key[0] >= 'A' && bytes.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == nil
	}
	return false
}

// openFile opens a file that is one.
func openFile(name string) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		_ = f.Close()
		return nil, fmt.Errorf("%s is a directory, not a file", name)
	}
	return f, nil
}

// Files opens the files that a scenario names, beside it, and remembers them.
// The zero value opens none: a scenario of the library has none.
type Files struct {
	beside string // the scenario's file
	open   []io.Closer
}

// Files returns what opens the files that the source names.
func (s *Source) Files() *Files {
	if s.library {
		return &Files{}
	}
	return &Files{beside: s.File}
}

// Open opens a file.
func (f *Files) Open(name string) (io.Reader, error) {
	if f.beside == "" {
		return nil, fmt.Errorf("%s: scenarios of the library have no files", name)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(f.beside), name)
	}
	file, err := openFile(name)
	if err != nil {
		return nil, err
	}
	f.open = append(f.open, file)
	return file, nil
}

// Close closes all that was opened.
func (f *Files) Close() {
	for _, c := range f.open {
		_ = c.Close()
	}
	f.open = nil
}

// Library reports whether the source is a scenario of the library.
func (s *Source) Library() bool { return s.library }
