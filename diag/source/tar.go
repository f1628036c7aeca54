package source

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"
)

// WriteTar writes a recording, which is a directory, as a tar stream that ParseTar
// takes: its regular files and directories, without owners, modes or times of theirs, at
// most MaxArchive bytes. More is an error, with a part of it written.
func WriteTar(w io.Writer, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	tw := tar.NewWriter(&bounded{w: w, left: MaxArchive})
	members := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case members >= 2*maxMembers:
			return fmt.Errorf("the recording has more than %d files and directories", members)
		case e.IsDir():
			members++
			return tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: time.Unix(0, 0)})
		case !e.Type().IsRegular():
			return nil
		}
		members++
		if fi, err := e.Info(); err != nil || fi.Size() > MaxArchive {
			return cmp.Or(err, errLongArchive)
		}
		b, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(b)), Mode: 0o644, ModTime: time.Unix(0, 0)}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		_, err = tw.Write(b)
		return err
	})
	if err != nil {
		return err
	}
	return tw.Close()
}

// bounded passes on so many bytes and no more.
type bounded struct {
	w    io.Writer
	left int64
}

var errLongArchive = fmt.Errorf("the recording is longer than the limit of %d bytes", MaxArchive)

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errLongArchive
	}
	return b.w.Write(p)
}

// ParseTar opens a recording that comes as a tar stream, which is read to its end: at
// most MaxArchive bytes. It is in memory; names lead nowhere else, and what is neither
// file nor directory is refused. Errors name the recording as the caller does.
func ParseTar(name string, r io.Reader) (*Recording, error) {
	a, err := parseTar(r)
	if err != nil {
		return nil, fmt.Errorf("recording %s: %w", name, err)
	}
	return a.recording(name)
}

func parseTar(r io.Reader) (*archive, error) {
	limit := &io.LimitedReader{R: r, N: MaxArchive + 1}
	tr := tar.NewReader(limit)
	a := &archive{files: map[string][]byte{}, dirs: map[string]map[string]bool{".": {}}}
	left := int64(MaxArchive) // of contents: the holes of a sparse file do not come over the wire
	for n := 0; ; n++ {
		h, err := tr.Next()
		switch {
		case limit.N <= 0:
			return nil, fmt.Errorf("more than %d bytes", MaxArchive)
		case errors.Is(err, io.EOF) && n > 0:
			return a, nil
		case errors.Is(err, io.EOF):
			return nil, errors.New("nothing came")
		case err != nil:
			return nil, fmt.Errorf("no whole tar stream: %w", err)
		case n >= 2*maxMembers:
			return nil, fmt.Errorf("more than %d files and directories", n)
		}
		member := path.Clean(h.Name)
		switch {
		case h.Typeflag == tar.TypeDir && a.dirs[member] != nil: // of a file before it
		case h.Typeflag == tar.TypeDir:
			if err := a.addDir(member); err != nil {
				return nil, err
			}
		case h.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("%.100q is neither a file nor a directory", h.Name)
		default:
			if err := a.add(member); err != nil {
				return nil, err
			}
			b, err := io.ReadAll(io.LimitReader(tr, left+1))
			if err != nil || limit.N <= 0 {
				return nil, fmt.Errorf("%.100q is not whole", h.Name)
			}
			if left -= int64(len(b)); left < 0 {
				return nil, fmt.Errorf("%.100q: more than %d in all files", h.Name, MaxArchive)
			}
			a.files[member] = b
		}
	}
}

// addDir makes a directory that may stay empty.
func (a *archive) addDir(name string) error {
	const inside = "x" // a file there makes the directories above; it goes again
	if err := a.add(name + "/" + inside); err != nil {
		return err
	}
	delete(a.files, name+"/"+inside)
	delete(a.dirs[name], inside)
	return nil
}
