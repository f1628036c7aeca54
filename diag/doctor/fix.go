package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/diag/counter"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// FixLine is a command that mends something, or a sentence: one for all drivers, or one
// for each family of drivers that has its own way.
type FixLine struct {
	All string `yaml:"all" json:"all,omitempty"`
	// By are the lines by family: mlx5, bnxt_re, irdma, efa, rxe, siw, verbena; other is
	// for those that are not named, which have nothing of it without one.
	By map[string]string `yaml:"by" json:"by,omitempty"`
}

// Families of drivers that a fix may name, and other for the rest.
var families = []string{"mlx5", "bnxt_re", "irdma", "efa", "rxe", "siw", "verbena", "other"}

// UnmarshalYAML reads a string, or a line by family.
func (l *FixLine) UnmarshalYAML(unmarshal func(any) error) error {
	if err := unmarshal(&l.All); err == nil {
		return nil
	}
	l.All = ""
	return unmarshal(&l.By)
}

// check refuses families that there are not.
func (l *FixLine) check() error {
	for _, name := range slices.Sorted(maps.Keys(l.By)) {
		if !slices.Contains(families, name) {
			return fmt.Errorf("fix for the driver %q, must be one of %s", name, strings.Join(families, ", "))
		}
	}
	if l.All == "" && len(l.By) == 0 {
		return fmt.Errorf("an empty fix")
	}
	return nil
}

// fixText is a compiled FixLine.
type fixText struct {
	all text
	by  map[string]text
}

// of returns the text for a family; nil where it has none.
func (f *fixText) of(family string) text {
	if f.by == nil {
		return f.all
	}
	if t, ok := f.by[family]; ok {
		return t
	}
	return f.by["other"]
}

// family is the family of the driver of a device, other where it is not known. A
// simulated device has no driver that a command could reach.
func family(d *snapshot.Device) string {
	switch {
	case d == nil:
		return "other"
	case d.Kind == snapshot.Verbena:
		return "verbena"
	case d.Kind == snapshot.RXE:
		return "rxe"
	case d.Kind == snapshot.SIW:
		return "siw"
	case d.Kind == snapshot.Sim:
		return "other"
	case strings.HasPrefix(d.Driver.Or(d.Name), "efa"):
		return "efa"
	}
	if f := counter.Of(d); f != counter.Unknown {
		return string(f)
	}
	return "other"
}

// counterName is how the device's driver calls a counter; the canonical name where it
// does not count it.
func counterName(d *snapshot.Device, name string) string {
	if d == nil {
		return name
	}
	if f := counter.Family(family(d)); f != "other" {
		if raw := counter.RawName(f, counter.Name(name)); raw != "" {
			return raw
		}
	}
	return name
}
