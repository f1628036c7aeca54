package source

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// beneath opens names below a directory with openat2(2), which walks the whole path in
// one call and never leads out of the directory; os.Root opens every part of it. Half of
// what is asked for is five directories and a link deep.
type beneath struct {
	dir *os.File
	// kernel says that the directory is of sysfs or proc, where nothing can block or act
	// when it is opened: no look is needed before.
	kernel bool
	// sysfs says that the directory is of sysfs, whose texts come in one piece. What is
	// mounted below it, such as cgroups, has no class/.
	sysfs bool
}

// openBeneath returns nil where the kernel has no such call (before Linux 5.6), or a
// filter forbids it.
func openBeneath(dir string) *beneath {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	b := &beneath{dir: f}
	fd, err := b.open(".", unix.O_PATH)
	if err != nil {
		f.Close()
		return nil
	}
	unix.Close(fd)
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) == nil {
		b.sysfs = st.Type == unix.SYSFS_MAGIC
		b.kernel = b.sysfs || st.Type == unix.PROC_SUPER_MAGIC
	}
	return b
}

func (b *beneath) close() {
	if b != nil {
		b.dir.Close()
	}
}

func (b *beneath) open(name string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH}
	for range 32 {
		fd, err := unix.Openat2(int(b.dir.Fd()), name, &how)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case errors.Is(err, unix.EXDEV):
			return -1, errOut
		case err != nil:
			return -1, err
		}
		return fd, nil
	}
	return -1, errUnsure
}

// mode returns what an open file is.
func mode(fd int) (m fs.FileMode, size int64, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, 0, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		m = fs.ModeDir
	case unix.S_IFIFO:
		m = fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m = fs.ModeSocket
	case unix.S_IFCHR, unix.S_IFBLK:
		m = fs.ModeDevice
	default:
		m = fs.ModeIrregular
	}
	return m, st.Size, nil
}

// look refuses what is no regular file, or no directory, before it is opened.
func (b *beneath) look(name string, dir bool) error {
	if b.kernel {
		return nil
	}
	fd, err := b.open(name, unix.O_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	m, _, err := mode(fd)
	switch {
	case err != nil:
		return err
	case dir && !m.IsDir():
		return Failure("ENOTDIR")
	case dir:
		return nil
	}
	return regular(m)
}

// pageBytes is the size that sysfs claims for a text.
const pageBytes = 4096

// readFile is tree.readFile; the error is errno's, a Failure or errUnsure.
func (b *beneath) readFile(name string, limit int) ([]byte, error) {
	if err := b.look(name, false); err != nil {
		return nil, err
	}
	fd, err := b.open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var size int64
	if !b.kernel || limit < pageBytes { // there a directory says EISDIR when it is read
		var m fs.FileMode
		if m, size, err = mode(fd); err != nil {
			return nil, err
		}
		if err := regular(m); err != nil {
			return nil, err
		}
		if size > int64(limit) {
			return nil, tooLong(limit)
		}
	}
	read := func(p []byte) (int, error) {
		for {
			n, err := unix.Read(fd, p)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			return max(n, 0), err
		}
	}
	// Most files are one number, whatever size they claim.
	var room [512]byte
	n, err := read(room[:])
	if err != nil {
		return nil, err
	}
	if b.sysfs && strings.HasPrefix(name, "class/") && n < len(room) && n <= limit {
		return bytes.Clone(room[:n]), nil
	}
	if n < len(room) {
		m, err := read(room[n:])
		if err != nil {
			return nil, err
		}
		if n += m; m == 0 && n <= limit {
			return bytes.Clone(room[:n]), nil
		}
	}
	return readAll(append(make([]byte, 0, max(int(size)+1, n)), room[:n]...), limit, read)
}

// openDir opens a directory.
func (b *beneath) openDir(name string) (*os.File, error) {
	if err := b.look(name, true); err != nil {
		return nil, err
	}
	fd, err := b.open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path.Join(b.dir.Name(), name)), nil
}

// names returns the names in a directory.
func (b *beneath) names(name string) (names []string, err error) {
	if err := b.look(name, true); err != nil {
		return nil, err
	}
	fd, err := b.open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	room := make([]byte, 8<<10)
	names = []string{} // empty, not missing
	for {
		n, err := unix.ReadDirent(fd, room)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return names, nil
		}
		_, _, names = unix.ParseDirent(room[:n], -1, names)
		if len(names) > MaxEntries {
			return nil, failureOf(fmt.Sprintf("more than %d entries", MaxEntries))
		}
	}
}

// readLink returns the target of a link.
func (b *beneath) readLink(name string) (string, error) {
	fd, err := b.open(name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var room [maxLink]byte
	n, err := unix.Readlinkat(fd, "", room[:])
	if errors.Is(err, unix.ENOENT) { // what readlink(2) calls EINVAL: no link
		err = unix.EINVAL
	}
	if err != nil {
		return "", err
	}
	return string(room[:n]), nil
}
