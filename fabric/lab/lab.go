package lab

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

//go:embed scenarios
var files embed.FS

// Names returns the names of the scenarios in order.
func Names() []string {
	entries, err := fs.ReadDir(files, "scenarios")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if n, ok := strings.CutSuffix(e.Name(), ".yaml"); ok {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

// Source returns the file of a scenario, and the name under which errors speak
// of it.
func Source(name string) (file string, text []byte, err error) {
	text, err = files.ReadFile("scenarios/" + name + ".yaml")
	if err != nil {
		return "", nil, fmt.Errorf("there is no scenario %q in the library", name)
	}
	return name + ".yaml", text, nil
}
