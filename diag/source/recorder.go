package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

const hostName = "proc/sys/kernel/hostname"

// Recorder passes questions on to a source and writes down what was asked and
// answered, failures too. It writes into a directory beside the one that it is given,
// which appears whole, with Commit, or not at all. It may be used by several
// goroutines.
type Recorder struct {
	src  Source
	dir  string // where the recording will be
	tmp  string // where it grows
	root *os.Root

	mu     sync.Mutex
	at     int
	meta   Meta
	listed map[string]bool // names that directories have
	told   map[string]bool // names that something was written for
	left   int64           // bytes that may still be written
	err    error           // the first failure to write
}

// Bounds of a recording: bytes of all its files, unless [Recorder.Limit] says less, and
// what a file or directory is counted with beside its contents, which a tar stream of
// it has.
const (
	MaxRecording = 1 << 30
	memberBytes  = 1 << 10
)

// Limit bounds what the recording may have from here on, in bytes as a tar stream of it
// has them, to n or less. A recording that would be longer is none: Commit says so.
func (r *Recorder) Limit(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = min(r.left, n)
}

// room takes what a file or directory needs from what is left.
func (r *Recorder) room(contents int) bool {
	if r.left -= int64(contents) + memberBytes; r.left < 0 && r.err == nil {
		r.err = errTooLong
	}
	return r.err == nil
}

var errTooLong = errors.New("longer than a recording may be; leave devices out (--devices, --exclude-devices)")

// NewRecorder begins a recording of one instant in a directory that does not exist or
// is empty. The error names it. The caller ends with Commit or Abort.
func NewRecorder(src Source, dir string) (*Recorder, error) {
	dir = filepath.Clean(dir)
	if err := emptyOrNew(dir); err != nil {
		return nil, fmt.Errorf("recording %s: %w", dir, err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".part-")
	if err != nil {
		return nil, fmt.Errorf("recording %s: %w", dir, err)
	}
	root, err := os.OpenRoot(tmp)
	if err != nil {
		os.RemoveAll(tmp)
		return nil, fmt.Errorf("recording %s: %w", dir, err)
	}
	r := &Recorder{src: src, dir: dir, tmp: tmp, root: root, meta: Meta{Version: MetaVersion}, left: MaxRecording}
	r.begin(0)
	return r, nil
}

func emptyOrNew(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return Failed(err)
	case len(entries) > 0:
		return fmt.Errorf("the directory has %d entries already; give a new or empty one", len(entries))
	}
	return nil
}

func (r *Recorder) begin(i int) {
	r.at, r.listed, r.told = i, map[string]bool{}, map[string]bool{}
	r.meta.Taken = append(r.meta.Taken, time.Time{})
}

// Next begins the next instant.
func (r *Recorder) Next() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finish()
	r.begin(r.at + 1)
}

// finish writes what the instant's listings need: a name in a directory that nothing
// was asked about is an empty directory.
func (r *Recorder) finish() {
	for name := range r.listed {
		if !r.told[name] && r.err == nil && r.room(0) {
			r.keep(r.root.MkdirAll(r.file(name), 0o755))
		}
	}
}

// Commit ends the recording and puts it into its place.
func (r *Recorder) Commit() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finish()
	b, err := json.MarshalIndent(r.meta, "", "  ")
	r.keep(err)
	r.write("meta.json", append(b, '\n'))
	r.root.Close()
	if r.err == nil {
		r.keep(os.Chmod(r.tmp, 0o755))
		r.keep(place(r.tmp, r.dir))
	}
	if r.err != nil {
		os.RemoveAll(r.tmp)
		return fmt.Errorf("recording %s: %w", r.dir, r.err)
	}
	return nil
}

// place renames; an empty directory in the way is replaced.
func place(from, to string) error {
	if err := emptyOrNew(to); err != nil {
		return err
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}

// Abort leaves nothing behind.
func (r *Recorder) Abort() {
	r.root.Close()
	os.RemoveAll(r.tmp)
}

func (r *Recorder) keep(err error) {
	if r.err == nil && err != nil {
		r.err = err
	}
}

func (r *Recorder) file(name string) string { return "t" + strconv.Itoa(r.at) + "/root/" + name }

// write writes a file with its directories.
func (r *Recorder) write(name string, b []byte) {
	if r.err != nil || !r.room(len(b)) {
		return
	}
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		if err := r.root.MkdirAll(name[:i], 0o755); err != nil {
			r.keep(err)
			return
		}
	}
	r.keep(r.root.WriteFile(name, b, 0o644))
}

// tell notes that a name has something of its own, and so all directories above it.
func (r *Recorder) tell(name string) {
	for {
		if r.told[name] {
			return
		}
		r.told[name] = true
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			return
		}
		name = name[:i]
	}
}

// failed writes why a file, link or directory could not be read. What is not there
// needs no word, unless a listing has its name.
func (r *Recorder) failed(name, ending string, err error) {
	if errors.Is(err, fs.ErrNotExist) && (ending != "" || !r.listed[name]) {
		return
	}
	r.tell(name)
	r.write(r.file(name)+ending+".err", []byte(Failed(err).Error()+"\n"))
}

// Origin is that of the source.
func (r *Recorder) Origin() snapshot.Origin {
	if o, ok := r.src.(interface{ Origin() snapshot.Origin }); ok {
		return o.Origin()
	}
	return snapshot.Live
}

// ReadFile implements Source.
func (r *Recorder) ReadFile(name string) ([]byte, error) {
	b, err := r.src.ReadFile(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed(name, "", err)
		return nil, Failed(err)
	}
	if name == hostName {
		r.meta.Host = strings.TrimSpace(string(b))
	}
	r.tell(name)
	r.write(r.file(name), b)
	return b, nil
}

// ReadDir implements Source.
func (r *Recorder) ReadDir(name string) ([]string, error) {
	names, err := r.src.ReadDir(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed(name, "", err)
		return nil, Failed(err)
	}
	r.tell(name)
	if r.err == nil && r.room(0) {
		r.keep(r.root.MkdirAll(r.file(name), 0o755))
	}
	for _, n := range names {
		if fs.ValidPath(n) && !strings.Contains(n, "/") && n != "." {
			r.listed[name+"/"+n] = true
		}
	}
	return names, nil
}

// ReadLink implements Source.
func (r *Recorder) ReadLink(name string) (string, error) {
	target, err := r.src.ReadLink(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed(name, ".link", err)
		return "", Failed(err)
	}
	r.tell(name)
	r.write(r.file(name)+".link", []byte(target+"\n"))
	return target, nil
}

// Ask implements Source.
func (r *Recorder) Ask(query string) ([]byte, error) {
	b, err := r.src.Ask(query)
	r.mu.Lock()
	defer r.mu.Unlock()
	file := "t" + strconv.Itoa(r.at) + "/nl/" + query
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Failed(err)
	case err != nil:
		r.write(file+".err", []byte(Failed(err).Error()+"\n"))
		return nil, Failed(err)
	case query == QueryMeta:
		var m Meta
		if json.Unmarshal(b, &m) == nil && len(m.Taken) > 0 {
			r.meta.Taken[r.at], r.meta.Anonymised = m.Taken[0], m.Anonymised
			if m.Host != "" {
				r.meta.Host = m.Host
			}
		}
		return b, nil
	}
	r.write(file+".json", b)
	return b, nil
}
