package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// maxCollection is how many entries a directory of recordings has at most.
const maxCollection = 10_000

// Find returns the recordings at a path, at most limit: the path itself, if that is one
// recording or a file; or those that stand in the directory, by name, files of the form
// of [Open] among them if their names end in .txtar. Links in the directory are not
// followed. A recording that is found may still be one that [Open] refuses. The error
// names the path.
func Find(path string, limit int) ([]string, error) {
	fi, err := os.Stat(path) // before the open: that of a pipe would wait
	if err != nil {
		return nil, fmt.Errorf("recording %s: %w", path, whyNot(err))
	}
	if !fi.IsDir() || recordedIn(path) {
		return []string{path}, nil
	}
	entries, err := collection(path, maxCollection)
	if err != nil {
		return nil, fmt.Errorf("recording %s: %w", path, err)
	}
	var all []string
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".txtar") || e.IsDir() && recordedIn(name) {
			all = append(all, name)
		}
	}
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("recording %s: neither meta.json nor t0, and no recordings in it: not what verbena snapshot or sim run --snapshots writes", path)
	case len(all) > limit:
		return nil, fmt.Errorf("recordings in %s: %d, the limit is %d; name those that are wanted, such as %s", path, len(all), limit, filepath.Join(path, "NAME"))
	}
	slices.SortFunc(all, snapshot.Natural)
	return all, nil
}

// recordedIn reports whether a directory is a recording, by what it has to have.
func recordedIn(dir string) bool {
	for _, name := range []string{"meta.json", "t0"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// collection reads a directory, which may be anybody's.
func collection(dir string, most int) ([]fs.DirEntry, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, whyNot(err)
	}
	defer f.Close()
	entries, err := f.ReadDir(most + 1)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, whyNot(err)
	case len(entries) > most:
		return nil, fmt.Errorf("more than %d entries", most)
	}
	return entries, nil
}
