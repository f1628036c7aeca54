package guest

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// libraryDirs is where Debian's loader looks on amd64.
var libraryDirs = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib", "/usr/lib"}

// isELF reports whether path is an ELF file (and not a script).
func isELF(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// libraries returns every shared library and loader that the ELF files need, transitively, by the path that the
// loader would use. Libraries that a program opens by name at run time are not seen.
func libraries(files []string) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	queue := append([]string(nil), files...)
	for len(queue) > 0 {
		file := queue[0]
		queue = queue[1:]
		needed, err := neededBy(file)
		if err != nil {
			return nil, err
		}
		for _, lib := range needed {
			if !seen[lib] {
				seen[lib] = true
				out = append(out, lib)
				queue = append(queue, lib)
			}
		}
	}
	return out, nil
}

// neededBy returns the paths of the libraries and of the loader that one ELF file names.
func neededBy(file string) ([]string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, fmt.Errorf("libraries of %s: %w", file, err)
	}
	defer f.Close()
	names, err := f.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("libraries of %s: %w", file, err)
	}
	var out []string
	for _, name := range names {
		path, err := findLibrary(name)
		if err != nil {
			return nil, fmt.Errorf("libraries of %s: %w", file, err)
		}
		out = append(out, path)
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		name := make([]byte, p.Filesz)
		if _, err := p.ReadAt(name, 0); err != nil {
			return nil, fmt.Errorf("loader of %s: %w", file, err)
		}
		out = append(out, string(name[:max(0, len(name)-1)])) // the name ends with a NUL
	}
	return out, nil
}

func findLibrary(name string) (string, error) {
	for _, dir := range libraryDirs {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("no %s in %v", name, libraryDirs)
}
