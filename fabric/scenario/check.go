package scenario

import (
	"fmt"
	"strings"
)

// checks collects the first thing that is wrong with a part of a scenario.
type checks struct {
	s *Scenario
	// within are the paths under which the file may have given the part, the
	// most particular first: switches[2], switch.
	within []string
	err    error
}

// fail notes a fault at a key of the part.
func (c *checks) fail(key, format string, args ...any) {
	if c.err != nil {
		return
	}
	for _, w := range c.within {
		if p, ok := c.s.read.pos[join(w, key)]; ok {
			c.err = errorAt(p, join(w, key), format, args...)
			return
		}
	}
	path := key
	if len(c.within) > 0 {
		path = join(c.within[0], key)
	}
	c.err = errorAt(c.s.at(path), path, format, args...)
}

// given reports whether the file gives a key of the part.
func (c *checks) given(key string) bool {
	for _, w := range c.within {
		if _, ok := c.s.read.pos[join(w, key)]; ok {
			return true
		}
	}
	return false
}

// at returns where a key is given, or what it belongs to.
func (s *Scenario) at(path string) position {
	for path != "" {
		if p, ok := s.read.pos[path]; ok {
			return p
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return position{s.file, 1, 1}
}

// Fail returns an error about a key, with the place at which the file gives it.
// It is for who builds a run and finds that a key cannot be met.
func (s *Scenario) Fail(path, format string, args ...any) error {
	return errorAt(s.at(path), path, format, args...)
}

// Warning is something unwise: where, and what will happen.
type Warning struct {
	Place string // file:line:col, or the override; "" if no key gives it
	Path  string // key
	Text  string
}

// String returns "file:line:col: warning: key: what will happen".
func (w Warning) String() string {
	s := "warning: "
	if w.Place != "" {
		s = w.Place + ": " + s
	}
	if w.Path != "" {
		s += w.Path + ": "
	}
	return s + w.Text
}

// warn makes a warning about the first of the paths that the file gives.
func (s *Scenario) warn(paths []string, format string, args ...any) Warning {
	w := Warning{Path: paths[0], Text: oneLine(fmt.Sprintf(format, args...))}
	for _, path := range paths {
		if p, ok := s.read.pos[path]; ok {
			w.Place, w.Path = p.String(), path
			return w
		}
	}
	if p := s.at(paths[0]); p.line != 1 || p.col != 1 {
		w.Place = p.String()
	}
	return w
}
