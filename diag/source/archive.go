package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// Bounds of a recording in one text file.
const (
	MaxArchive   = 64 << 20 // bytes of the file
	maxMembers   = 1 << 17  // files in it
	maxNameBytes = 1024     // of the name of one
	maxDepth     = 64       // directories above one
)

// archive is a recording in one text file: the txtar format, files one after the
// other under lines "-- NAME --". It is in memory; names lead nowhere else.
type archive struct {
	files map[string][]byte
	dirs  map[string]map[string]bool // names in a directory; true for a directory
}

// Open opens a recording: a directory, or one text file with the same files in it
// (txtar, as tests have them). The error names it. The caller closes it.
func Open(name string) (*Recording, error) {
	fi, err := os.Stat(name) // before the open: that of a pipe would wait
	if err != nil {
		return nil, fmt.Errorf("recording %s: %w", name, whyNot(err))
	}
	if fi.IsDir() {
		return OpenDir(name)
	}
	if err := regular(fi.Mode()); err != nil {
		return nil, fmt.Errorf("recording %s: %w", name, err)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, fmt.Errorf("recording %s: %w", name, whyNot(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxArchive+1))
	if err != nil {
		return nil, fmt.Errorf("recording %s: %w", name, whyNot(err))
	}
	return ParseArchive(name, text)
}

// ParseArchive opens a recording in one text file by its contents, which are given.
// Errors name file and line.
func ParseArchive(name string, text []byte) (*Recording, error) {
	a, err := parseArchive(text)
	if err != nil {
		return nil, fmt.Errorf("recording %s%w", name, err)
	}
	return a.recording(name)
}

// recording opens what is in the archive.
func (a *archive) recording(name string) (*Recording, error) {
	r := &Recording{tree: a}
	if err := r.open(); err != nil {
		return nil, fmt.Errorf("recording %s: %w", name, err)
	}
	return r, nil
}

// parseArchive cuts a text into its files. Errors begin with a colon and the line.
func parseArchive(text []byte) (*archive, error) {
	if len(text) > MaxArchive {
		return nil, fmt.Errorf(": more than %d bytes in one file; record into a directory", MaxArchive)
	}
	a := &archive{files: map[string][]byte{}, dirs: map[string]map[string]bool{".": {}}}
	name, from, line := "", 0, 0
	for at := 0; at < len(text); {
		end := bytes.IndexByte(text[at:], '\n')
		if end < 0 {
			end = len(text) - at - 1
		}
		next := at + end + 1
		line++
		if member, ok := marker(text[at:next]); ok {
			if name != "" {
				a.files[name] = text[from:at:at]
			}
			if err := a.add(member); err != nil {
				return nil, fmt.Errorf(":%d: %w", line, err)
			}
			name, from = member, next
		}
		at = next
	}
	if name == "" {
		return nil, errors.New(": no text archive of a recording: no line such as -- t0/root/sys/class/infiniband/mlx5_0/ports/1/state --")
	}
	a.files[name] = text[from:len(text):len(text)]
	return a, nil
}

// marker reads a line "-- NAME --".
func marker(line []byte) (string, bool) {
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	rest, ok := bytes.CutPrefix(line, []byte("-- "))
	if !ok {
		return "", false
	}
	name, ok := bytes.CutSuffix(rest, []byte(" --"))
	name = bytes.TrimSpace(name)
	return string(name), ok && len(name) > 0
}

// add makes the place of a file: its name in its directory, and that in the one above.
func (a *archive) add(name string) error {
	switch {
	case len(name) > maxNameBytes:
		return fmt.Errorf("a name of %d bytes, must be at most %d", len(name), maxNameBytes)
	case !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00"):
		return fmt.Errorf("%.100q is no path inside the recording", name)
	case strings.Count(name, "/") > maxDepth:
		return fmt.Errorf("%.100q is more than %d directories deep", name, maxDepth)
	case len(a.files) >= maxMembers:
		return fmt.Errorf("more than %d files", maxMembers)
	case a.files[name] != nil:
		return fmt.Errorf("%.100q is there twice", name)
	case a.dirs[name] != nil:
		return fmt.Errorf("%.100q is a directory already", name)
	}
	a.files[name] = []byte{}
	isDir := false
	for {
		dir, base := path.Dir(name), path.Base(name)
		if a.files[dir] != nil {
			return fmt.Errorf("%.100q is a file already", dir)
		}
		there := a.dirs[dir] != nil
		if !there && len(a.dirs) > maxMembers { // two bytes of a name are a directory
			return fmt.Errorf("more than %d directories", maxMembers)
		}
		if !there {
			a.dirs[dir] = map[string]bool{}
		}
		a.dirs[dir][base] = isDir
		if there || dir == "." {
			return nil
		}
		name, isDir = dir, true
	}
}

// isDir implements store.
func (a *archive) isDir(name string) (bool, error) {
	if a.dirs[name] == nil && a.files[name] == nil {
		return false, ErrNoEntry
	}
	return a.dirs[name] != nil, nil
}

// readFile implements store.
func (a *archive) readFile(name string, limit int) ([]byte, error) {
	b, ok := a.files[name]
	switch {
	case !fs.ValidPath(name):
		return nil, failureOf(fmt.Sprintf("%.100q is no path inside the tree", name))
	case a.dirs[name] != nil:
		return nil, Failure("EISDIR")
	case !ok:
		return nil, ErrNoEntry
	case len(b) > limit:
		return nil, failureOf(fmt.Sprintf("longer than the limit of %d bytes", limit))
	}
	return bytes.Clone(b), nil
}

// readDir implements store.
func (a *archive) readDir(name string) ([]fs.DirEntry, error) {
	names, ok := a.dirs[name]
	switch {
	case a.files[name] != nil:
		return nil, Failure("ENOTDIR")
	case !ok:
		return nil, ErrNoEntry
	}
	out := make([]fs.DirEntry, 0, len(names))
	for n, dir := range names {
		out = append(out, fs.FileInfoToDirEntry(member{n, dir}))
	}
	return out, nil
}

// Close implements store.
func (a *archive) Close() error { return nil }

// member is a file or directory of an archive.
type member struct {
	name string
	dir  bool
}

func (m member) Name() string       { return m.name }
func (m member) Size() int64        { return 0 }
func (m member) ModTime() time.Time { return time.Time{} }
func (m member) IsDir() bool        { return m.dir }
func (m member) Sys() any           { return nil }
func (m member) Mode() fs.FileMode {
	if m.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
