package play

import (
	"errors"
	"fmt"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/scenario"
)

// Change is what a command line changes of a scenario.
type Change struct {
	Sets   []string // key=value, in order
	Tables *Source  // a switch's tables, put over the setting of every switch; nil: none
}

// Reading is a scenario as it will run.
type Reading struct {
	*scenario.Scenario
	// Notes are what the reader should be told: warnings of foreign formats,
	// and keys that were moved with another.
	Notes []string
	// made says that the text was made of other files: places in it say nothing.
	made bool
}

// Scenario reads the source as a scenario with the changes.
func (s *Source) Scenario(c Change) (*Reading, error) {
	file, text := s.File, s.Text
	r := &Reading{made: s.made || s.Kind != Scenario || c.Tables != nil}
	var err error
	switch s.Kind {
	case Saved:
		return nil, fmt.Errorf("%s is the result of a run, not a scenario", s.Name)
	case Tables:
		return nil, fmt.Errorf("%s has the tables of a switch, not a scenario; put them over one with --tables %s", s.Name, s.Name)
	case HPCC:
		var warnings []scenario.Warning
		if r.Scenario, warnings, err = scenario.ReadHPCC(file, text); err != nil {
			return nil, err
		}
		r.note(warnings)
		text = r.YAML()
	case Scenario:
	}
	if c.Tables != nil {
		if text, err = r.overlay(file, text, c.Tables); err != nil {
			return nil, err
		}
	}
	sets, moved := follow(file, text, c.Sets)
	r.Notes = append(r.Notes, moved...)
	if r.Scenario, err = scenario.ParseSet(file, text, sets); err != nil {
		return nil, r.unplaced(err)
	}
	if r.Name == "" || s.Kind == HPCC {
		r.Name = strings.TrimSuffix(strings.TrimSuffix(baseName(file), ".yaml"), ".txt")
	}
	return r, nil
}

func (r *Reading) note(warnings []scenario.Warning) {
	for _, w := range warnings {
		r.Notes = append(r.Notes, w.String())
	}
}

// overlay puts the tables of a switch over the setting of every switch and
// returns the scenario's text.
func (r *Reading) overlay(file string, text []byte, tables *Source) ([]byte, error) {
	if tables.Kind != Tables {
		return nil, fmt.Errorf("%s has none of the tables of a switch (config_db.json)", tables.Name)
	}
	sc, err := scenario.Parse(file, text)
	if err != nil {
		return nil, err
	}
	db, err := scenario.ReadSONiC(tables.File, tables.Text)
	if err != nil {
		return nil, err
	}
	sw, warnings, err := db.Switch(sc.Switch)
	if err != nil {
		return nil, err
	}
	r.note(warnings)
	sc.Switch = sw
	if _, err := scenario.Parse(tables.File, sc.YAML()); err != nil {
		return nil, r.unplaced(err)
	}
	return sc.YAML(), nil
}

// unplaced takes line and column from an error about a text that nobody has
// written.
func (r *Reading) unplaced(err error) error {
	var e *scenario.Error
	if r.made && errors.As(err, &e) && e.Line > 0 {
		c := *e
		c.Line, c.Col = 0, 0
		return &c
	}
	return err
}

// warnings returns those of the scenario in words.
func (r *Reading) warnings(list []scenario.Warning) []string {
	var out []string
	for _, w := range list {
		if r.made {
			w.Place = ""
		}
		out = append(out, w.String())
	}
	return out
}

// follow moves the second threshold of a step: where Kmin and Kmax of the
// scenario are one value and only one of them is set, the other goes with it.
func follow(file string, text []byte, sets []string) (all, notes []string) {
	var kmin, kmax string
	for _, set := range sets {
		key, val, ok := strings.Cut(set, "=")
		if !ok {
			continue
		}
		switch strings.TrimPrefix(strings.TrimSpace(key), "switch.") {
		case "ecn.kmin", "kmin":
			kmin = val
		case "ecn.kmax", "kmax":
			kmax = val
		}
	}
	if (kmin == "") == (kmax == "") {
		return sets, nil
	}
	base, err := scenario.Parse(file, text)
	if err != nil || base.Switch.ECN.KMin != base.Switch.ECN.KMax {
		return sets, nil
	}
	key, val, other := "switch.ecn.kmax", kmin, "kmin"
	if kmin == "" {
		key, val, other = "switch.ecn.kmin", kmax, "kmax"
	}
	note := fmt.Sprintf("note: %s goes with %s: the scenario has one threshold for both, %s", key, other, base.Switch.ECN.KMin)
	return append(append(all, sets...), key+"="+val), []string{note}
}

// baseName is the last part of a path of any system.
func baseName(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }
