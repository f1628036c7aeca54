package scenario

import (
	"reflect"
)

// Parse reads a scenario file. The name is for errors only. An error is an
// *Error: the first thing that is wrong.
func Parse(name string, data []byte) (*Scenario, error) {
	return ParseSet(name, data, nil)
}

// ParseSet reads a scenario file and sets keys over it, each "key.path=value".
func ParseSet(name string, data []byte, sets []string) (*Scenario, error) {
	root, err := readTree(name, data)
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		if root, err = override(root, set); err != nil {
			return nil, err
		}
	}
	s := Default()
	d := newDecoder()
	s.file, s.read, s.base = name, d, root
	if root.kind != mapKind && root.kind != nullKind {
		return nil, errorAt(root.pos, "", "%s where a map of keys is wanted, as in topology:", describe(root))
	}
	if err := d.structure(root, reflect.ValueOf(s).Elem(), ""); err != nil {
		return nil, err
	}
	if err := s.finish(); err != nil {
		return nil, err
	}
	return s, nil
}
