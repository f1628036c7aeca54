package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
)

// tree reads regular files below one directory and nothing else: no way leads out of
// it, and what could block or act when it is opened (pipes, devices, sockets) is
// refused by a look before.
type tree struct {
	root    *os.Root
	missing Failure  // why there is no root, and nothing can be read
	links   bool     // follow symbolic links that stay inside
	fast    *beneath // the same in fewer calls of the kernel, of a tree whose links are followed; nil if it cannot

	mu    sync.Mutex
	plain map[string]bool // directories that are known to be no links
	// names are what directories hold, of a tree that does not change; kept counts them.
	// Most of what is asked for is absent, and each look costs a walk from the top.
	names map[string]map[string]bool
	kept  int
}

// Bounds of what is remembered of directories.
const (
	maxNamed = 4096    // names of a directory; longer ones are looked at each time
	maxKept  = 1 << 18 // names in all
)

func openTree(dir string, links bool) (*tree, error) {
	fi, err := os.Stat(dir) // before the open: that of a pipe would wait
	if err != nil {
		return nil, whyNot(err)
	}
	if !fi.IsDir() {
		return nil, errors.New("not a directory")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, whyNot(err)
	}
	t := &tree{root: root, links: links, plain: map[string]bool{".": true}, names: map[string]map[string]bool{}}
	if links {
		t.fast = openBeneath(dir)
	}
	return t, nil
}

// missingTree is a tree of which nothing can be read.
func missingTree(why string) *tree { return &tree{missing: failureOf(why)} }

// has reports whether something is at a name, be it a link.
func (t *tree) has(name string) bool {
	if t.missing != "" {
		return false
	}
	_, err := t.root.Lstat(name)
	return err == nil
}

// Close closes the directory.
func (t *tree) Close() error {
	if t.root == nil {
		return nil
	}
	t.fast.close()
	return t.root.Close()
}

// isDir implements store.
func (t *tree) isDir(name string) (bool, error) {
	fi, err := t.look(name)
	return err == nil && fi.IsDir(), err
}

// whyNot is the error of a path without the path.
func whyNot(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// look says what is at a name.
func (t *tree) look(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, failureOf(fmt.Sprintf("%.100q is no path inside the tree", name))
	}
	if t.missing != "" {
		return nil, t.missing
	}
	if t.links {
		fi, err := t.root.Stat(name)
		if err != nil {
			return nil, t.failed(err)
		}
		return fi, nil
	}
	if err := t.plainDir(path.Dir(name)); err != nil {
		return nil, err
	}
	if t.absent(name) {
		return nil, ErrNoEntry
	}
	fi, err := t.root.Lstat(name)
	if err != nil {
		return nil, t.failed(err)
	}
	if fi.Mode()&fs.ModeSymlink != 0 {
		return nil, Failure("a symbolic link, not followed")
	}
	return fi, nil
}

// errOut is a link that leads out of the tree.
const errOut Failure = "a symbolic link out of the tree, not followed"

// errUnsure says that directories were renamed all the time while a link with ".." in it
// was followed, so that the kernel could not tell where it led: os.Root can.
var errUnsure = errors.New("not sure")

// failed also gives the one error of os.Root that is no errno a plainer name.
func (t *tree) failed(err error) error {
	if strings.Contains(err.Error(), "escapes from parent") {
		return errOut
	}
	return Failed(err)
}

// plainDir makes sure that no part of a directory's path is a link.
func (t *tree) plainDir(dir string) error {
	t.mu.Lock()
	known := t.plain[dir]
	t.mu.Unlock()
	if known {
		return nil
	}
	if err := t.plainDir(path.Dir(dir)); err != nil {
		return err
	}
	if t.absent(dir) {
		return ErrNoEntry
	}
	fi, err := t.root.Lstat(dir)
	switch {
	case err != nil:
		return t.failed(err)
	case fi.Mode()&fs.ModeSymlink != 0:
		return Failure("a symbolic link, not followed")
	case !fi.IsDir():
		return ErrNoEntry
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.plain) > 1<<16 {
		clear(t.plain)
		t.plain["."] = true
	}
	t.plain[dir] = true
	return nil
}

// absent reports whether a name is known not to be in its directory, which is no link.
func (t *tree) absent(name string) bool {
	if name == "." {
		return false
	}
	dir, base := path.Split(name)
	dir = path.Clean(dir)
	t.mu.Lock()
	defer t.mu.Unlock()
	in, known := t.names[dir]
	if !known {
		if t.kept > maxKept {
			clear(t.names)
			t.kept = 0
		}
		in = t.list(dir)
		t.names[dir] = in
		t.kept += len(in) + 1
	}
	return in != nil && !in[base]
}

// list returns the names in a directory; nil where there are too many, or it cannot be
// read.
func (t *tree) list(dir string) map[string]bool {
	f, err := t.root.OpenFile(dir, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	all, err := f.Readdirnames(maxNamed + 1)
	if err != nil && !errors.Is(err, io.EOF) || len(all) > maxNamed {
		return nil
	}
	in := make(map[string]bool, len(all))
	for _, n := range all {
		in[n] = true
	}
	return in
}

// readFile reads a regular file of at most limit bytes.
func (t *tree) readFile(name string, limit int) ([]byte, error) {
	if t.fast != nil && fs.ValidPath(name) {
		b, err := t.fast.readFile(name, limit)
		if !errors.Is(err, errUnsure) {
			return b, Failed(err)
		}
	}
	fi, err := t.look(name)
	if err != nil {
		return nil, err
	}
	if err := regular(fi.Mode()); err != nil {
		return nil, err
	}
	f, err := t.root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, t.failed(err)
	}
	defer f.Close()
	if fi, err = f.Stat(); err != nil {
		return nil, t.failed(err)
	}
	if err := regular(fi.Mode()); err != nil {
		return nil, err
	}
	if fi.Size() > int64(limit) {
		return nil, tooLong(limit)
	}
	// sysfs says 4096 for every file, proc says 0; both are read in one or two calls.
	buf := make([]byte, 0, max(int(fi.Size())+1, 64))
	return readAll(buf, limit, func(p []byte) (int, error) {
		n, err := f.Read(p)
		if errors.Is(err, io.EOF) {
			err = nil
		} else if err != nil {
			err = t.failed(err)
		}
		return n, err
	})
}

func tooLong(limit int) error {
	return failureOf(fmt.Sprintf("longer than the limit of %d bytes", limit))
}

// readAll reads a file to its end, where read gives 0 bytes. buf is what has been read of
// it so far.
func readAll(buf []byte, limit int, read func([]byte) (int, error)) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, min(max(cap(buf), 512), limit+1))
		}
		n, err := read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return nil, tooLong(limit)
		case err != nil:
			return nil, err
		case n == 0:
			return buf, nil
		}
	}
}

func regular(m fs.FileMode) error {
	switch {
	case m.IsRegular():
		return nil
	case m.IsDir():
		return Failure("EISDIR")
	case m&fs.ModeNamedPipe != 0:
		return Failure("a named pipe, not read")
	case m&fs.ModeSocket != 0:
		return Failure("a socket, not read")
	case m&fs.ModeDevice != 0:
		return Failure("a device, not read")
	}
	return Failure("no regular file, not read")
}

// readDir returns the entries of a directory, unsorted.
func (t *tree) readDir(name string) ([]fs.DirEntry, error) {
	f, err := t.openDir(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []fs.DirEntry
	for {
		part, err := f.ReadDir(1024)
		all = append(all, part...)
		if len(all) > MaxEntries {
			return nil, failureOf(fmt.Sprintf("more than %d entries", MaxEntries))
		}
		if errors.Is(err, io.EOF) || err == nil && len(part) == 0 {
			return all, nil
		}
		if err != nil {
			return nil, t.failed(err)
		}
	}
}

// dirNames returns the names in a directory, unsorted.
func (t *tree) dirNames(name string) ([]string, error) {
	if t.fast != nil && fs.ValidPath(name) {
		names, err := t.fast.names(name)
		if !errors.Is(err, errUnsure) {
			return names, Failed(err)
		}
	}
	entries, err := t.readDir(name)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (t *tree) openDir(name string) (*os.File, error) {
	if t.fast != nil && fs.ValidPath(name) {
		f, err := t.fast.openDir(name)
		if !errors.Is(err, errUnsure) {
			return f, Failed(err)
		}
	}
	fi, err := t.look(name)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, Failure("ENOTDIR")
	}
	f, err := t.root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, t.failed(err)
	}
	return f, nil
}

// readLink returns the target of a symbolic link as it stands.
func (t *tree) readLink(name string) (string, error) {
	if t.missing != "" {
		return "", t.missing
	}
	if t.fast != nil && fs.ValidPath(name) {
		target, err := t.fast.readLink(name)
		if !errors.Is(err, errUnsure) {
			return target, Failed(err)
		}
	}
	target, err := t.root.Readlink(name)
	if err != nil {
		return "", t.failed(err)
	}
	return target, nil
}
