package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source/sonic"
)

// MaxTimes is how many instants a recording has at most.
const MaxTimes = 1000

// Recording is a recorded host: a directory, or one text file. It may be used by
// several goroutines.
type Recording struct {
	tree  store
	meta  Meta
	times int
}

// store is where the files of a recording are. Names never lead out of it.
type store interface {
	// isDir says whether there is a directory of a name; the error matches
	// [fs.ErrNotExist] where there is nothing.
	isDir(name string) (bool, error)
	// readFile reads a regular file of at most limit bytes; the bytes are given.
	readFile(name string, limit int) ([]byte, error)
	// readDir returns the entries of a directory, unsorted.
	readDir(name string) ([]fs.DirEntry, error)
	Close() error
}

// OpenDir opens a recording. Without meta.json the instants are those of the
// directories t0, t1, … and nobody knows when they were. The error names the
// directory. The caller closes it.
func OpenDir(path string) (*Recording, error) {
	t, err := openTree(path, false)
	if err != nil {
		return nil, fmt.Errorf("recording %s: %w", path, err)
	}
	r := &Recording{tree: t}
	if err := r.open(); err != nil {
		t.Close()
		return nil, fmt.Errorf("recording %s: %w", path, err)
	}
	return r, nil
}

func (r *Recording) open() error {
	for r.times < MaxTimes {
		dir, err := r.tree.isDir("t" + strconv.Itoa(r.times))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("t%d: %w", r.times, err)
		}
		if err != nil || !dir {
			break
		}
		r.times++
	}
	if r.times > 0 {
		if in, err := r.tree.readDir("t0"); err == nil && len(in) == 0 {
			return errors.New("directory t0 is empty: nothing was recorded")
		}
	}
	b, err := r.tree.readFile("meta.json", MaxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && r.times > 0:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("neither meta.json nor t0: not a recording of verbena snapshot")
	case err != nil:
		return fmt.Errorf("meta.json: %w", err)
	}
	if err := json.Unmarshal(b, &r.meta); err != nil {
		return fmt.Errorf("meta.json: %w", failureOf(err.Error()))
	}
	if r.meta.Version > MetaVersion {
		return fmt.Errorf("meta.json: version %d; this program reads up to %d", r.meta.Version, MetaVersion)
	}
	if r.times == 0 {
		return errors.New("no directory t0: nothing was recorded")
	}
	return nil
}

// Close closes it.
func (r *Recording) Close() error { return r.tree.Close() }

// Times is the number of instants, at least 1.
func (r *Recording) Times() int { return r.times }

// Meta is what the recording says about itself.
func (r *Recording) Meta() Meta {
	m := r.meta
	m.Taken = slices.Clone(m.Taken)
	return m
}

// At returns the host at instant i, from 0; instants that were not recorded have
// nothing.
func (r *Recording) At(i int) Source {
	d := &recorded{tree: r.tree, dir: "t" + strconv.Itoa(i), meta: r.meta}
	d.meta.Taken = nil
	if i >= 0 && i < len(r.meta.Taken) {
		d.meta.Taken = []time.Time{r.meta.Taken[i]}
	}
	return d
}

// recorded is one instant of a recording.
type recorded struct {
	tree store
	dir  string
	meta Meta
}

// Origin says that this source is a recording.
func (d *recorded) Origin() snapshot.Origin { return snapshot.Recorded }

func (d *recorded) at(name string) string { return d.dir + "/root/" + name }

// failure returns why a name could not be read, or ErrNoEntry if nothing says that.
func (d *recorded) failure(file string) error {
	b, err := d.tree.readFile(file+".err", maxLink)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNoEntry
	case err != nil:
		return err
	}
	return failureOf(string(b))
}

// ReadFile implements Source.
func (d *recorded) ReadFile(name string) ([]byte, error) {
	b, err := d.tree.readFile(d.at(name), MaxFile)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, Failure("EISDIR")) {
		if why := d.failure(d.at(name)); !errors.Is(why, ErrNoEntry) {
			return nil, why
		}
	}
	return b, err
}

// ReadDir implements Source.
func (d *recorded) ReadDir(name string) ([]string, error) {
	if err := d.failure(d.at(name)); !errors.Is(err, ErrNoEntry) {
		return nil, err
	}
	entries, err := d.tree.readDir(d.at(name))
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		n := e.Name()
		if e.Type().IsRegular() {
			n = strings.TrimSuffix(strings.TrimSuffix(n, ".err"), ".link")
		}
		if n != "" {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// ReadLink implements Source.
func (d *recorded) ReadLink(name string) (string, error) {
	file := d.at(name) + ".link"
	b, err := d.tree.readFile(file, maxLink)
	if errors.Is(err, fs.ErrNotExist) {
		return "", d.failure(file)
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

// Ask implements Source.
func (d *recorded) Ask(query string) ([]byte, error) {
	if query == QueryMeta {
		return json.Marshal(d.meta)
	}
	file := d.dir + "/nl/" + query
	b, err := d.tree.readFile(file+".json", MaxAnswer)
	if !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	if err = d.failure(file); !errors.Is(err, ErrNoEntry) {
		return nil, err
	}
	switch query {
	case QueryApp:
		return d.app()
	case QuerySwitch:
		return d.swtch()
	}
	return nil, ErrNoEntry
}

// app is the answer made by hand: app.json and log.txt.
func (d *recorded) app() ([]byte, error) {
	b, err := d.tree.readFile(d.dir+"/app.json", MaxFile)
	var app snapshot.App
	if err == nil {
		if err := json.Unmarshal(b, &app); err != nil {
			return nil, failureOf("app.json: " + err.Error())
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, failureOf("app.json: " + err.Error())
	}
	log, lerr := d.tree.readFile(d.dir+"/log.txt", MaxFile)
	switch {
	case lerr == nil:
		app.Log = append(app.Log, Lines(log)...)
	case !errors.Is(lerr, fs.ErrNotExist):
		return nil, failureOf("log.txt: " + lerr.Error())
	case err != nil:
		return nil, ErrNoEntry
	}
	return json.Marshal(app)
}

// swtch is the answer made of what a switch printed.
func (d *recorded) swtch() ([]byte, error) {
	entries, err := d.tree.readDir(d.dir + "/switch")
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".txt")
		if !ok || len(texts) >= 100 {
			continue
		}
		b, err := d.tree.readFile(d.dir+"/switch/"+e.Name(), MaxFile)
		if err != nil {
			return nil, failureOf("switch/" + e.Name() + ": " + err.Error())
		}
		texts[name] = string(b)
	}
	sw, err := sonic.Parse(texts)
	if err != nil {
		return nil, failureOf("switch/" + err.Error())
	}
	return json.Marshal(sw)
}

// Lines cuts a log into lines without their ends; at most 100,000, and of a longer
// one its last, since programs die at the end. Of a line of more than 4 KB it keeps the
// beginning.
func Lines(b []byte) []string {
	text := strings.ToValidUTF8(strings.TrimSuffix(string(b), "\n"), "\uFFFD")
	lines := strings.Split(text, "\n")
	if len(lines) > maxLines {
		lines = lines[len(lines)-maxLines:]
	}
	for i := range lines {
		line := strings.TrimSuffix(lines[i], "\r")
		if len(line) > maxLine {
			line = strings.Clone(strings.ToValidUTF8(line[:maxLine], ""))
		}
		lines[i] = line
	}
	return lines
}

const (
	maxLines = 100_000
	maxLine  = 4096 // bytes
)
