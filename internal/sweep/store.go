package sweep

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/verbena-rdma/verbena/fabric/metric"
)

// storeFormat grows when a line of the file changes its meaning.
const storeFormat = 1

// StoreName is the name of the file of a directory.
const StoreName = "results.jsonl"

// line is a run in the file.
type line struct {
	Key     string              `json:"key"`
	Program string              `json:"program"`
	Set     []string            `json:"set"`
	Seed    string              `json:"seed"`
	Digest  string              `json:"digest"`
	Why     string              `json:"why"`
	Metrics map[string]lineCell `json:"metrics"`
}

type lineCell struct {
	Value *float64 `json:"value"`
	Unit  string   `json:"unit"`
	Err   string   `json:"error,omitempty"`
}

// store is the file of runs: each line is added when its run has ended, so that
// whatever ends the program loses at most the runs under way.
type store struct {
	mu   sync.Mutex
	file *os.File // nil: nothing is kept
	runs map[string]*Measure
}

// openStore reads what is there, and opens the file for more. Lines that are
// damaged (the last one, if the machine went down) are passed over. No name:
// nothing is kept.
func openStore(dir string) (*store, error) {
	s := &store{runs: map[string]*Measure{}}
	if dir == "" {
		return s, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	name := filepath.Join(dir, StoreName)
	cut, err := s.read(name)
	if err != nil {
		return nil, err
	}
	if s.file, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666); err != nil {
		return nil, err
	}
	if cut {
		if _, err := s.file.WriteString("\n"); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// maxLine is the longest line that is read, in bytes.
const maxLine = 1 << 20

// read reads a file that may not be there; cut says that its last line has no
// end.
func (s *store) read(name string) (cut bool, err error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, maxLine)
	for {
		text, long, err := r.ReadLine()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return s.unended(f)
			}
			return false, err
		}
		if long {
			return false, fmt.Errorf("%s: a line of more than %d bytes: not a file of sweeps", name, maxLine)
		}
		var l line
		if json.Unmarshal(text, &l) == nil && l.Key != "" {
			s.runs[l.Key] = l.measure()
		}
	}
}

// unended reports whether a file ends within a line.
func (s *store) unended(f *os.File) (bool, error) {
	st, err := f.Stat()
	if err != nil || st.Size() == 0 || !st.Mode().IsRegular() {
		return false, err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], st.Size()-1); err != nil {
		return false, err
	}
	return last[0] != '\n', nil
}

func (l *line) measure() *Measure {
	m := &Measure{Key: l.Key, Why: l.Why, Cells: map[string]Cell{}, Stored: true}
	m.Seed, _ = strconv.ParseUint(l.Seed, 10, 64)
	m.Digest, _ = strconv.ParseUint(l.Digest, 16, 64)
	for name, c := range l.Metrics {
		cell := Cell{Err: c.Err}
		switch {
		case c.Value != nil:
			cell.V = *c.Value
		case cell.Err == "":
			cell.Err = "none"
		}
		switch c.Unit {
		case "bps":
			cell.Unit = metric.Bits
		case "ps":
			cell.Unit = metric.Time
		case "bytes":
			cell.Unit = metric.Bytes
		}
		m.Cells[name] = cell
	}
	return m
}

// find returns a run that has all of the metrics, or nil.
func (s *store) find(key string, metrics []string) *Measure {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.runs[key]
	if m == nil {
		return nil
	}
	for _, name := range metrics {
		if _, ok := m.Cells[name]; !ok {
			return nil
		}
	}
	return m
}

// add keeps a run.
func (s *store) add(m *Measure, program string, sets []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[m.Key] = m
	if s.file == nil {
		return nil
	}
	l := line{
		Key: m.Key, Program: program, Set: append([]string{}, sets...), Seed: strconv.FormatUint(m.Seed, 10),
		Digest: fmt.Sprintf("%016x", m.Digest), Why: m.Why, Metrics: map[string]lineCell{},
	}
	for name, c := range m.Cells {
		l.Metrics[name] = cellOf(c)
	}
	b, err := json.Marshal(&l)
	if err != nil {
		return err
	}
	_, err = s.file.Write(append(b, '\n')) // one write: lines of two programs do not mix
	return err
}

func (s *store) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
