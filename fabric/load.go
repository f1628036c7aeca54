package fabric

import (
	"io"

	"github.com/verbena-rdma/verbena/fabric/scenario"
)

// Files opens a file that a scenario names. This package does no input of its
// own; what is opened is closed by who opened it.
type Files func(name string) (io.Reader, error)

// Load composes the run of a scenario: its graph, checked against every name in
// it, its traffic, and what is unwise about it. files may be nil where the
// scenario names none. Errors of the scenario are *scenario.Error: one line with
// its place.
func Load(sc *scenario.Scenario, files Files) (*Run, []scenario.Warning, error) {
	g, err := sc.Graph(files)
	if err != nil {
		return nil, nil, err
	}
	if err := sc.Check(g); err != nil {
		return nil, nil, err
	}
	warnings := sc.Lint(g)
	traffic, err := Traffic(sc, g, files)
	if err != nil {
		return nil, warnings, err
	}
	r, err := New(sc, g, traffic)
	if err != nil {
		return nil, warnings, err
	}
	for _, w := range warnings {
		r.warnings = append(r.warnings, w.String())
	}
	return r, warnings, nil
}
