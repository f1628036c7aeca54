package benchsim

import (
	"embed"
	"path"

	"github.com/verbena-rdma/verbena/fabric/scenario"
)

//go:embed cases/*.yaml
var files embed.FS

// Case is one scenario that is measured.
type Case struct {
	Name   string
	Title  string
	Rounds int // how often, where the caller does not say
}

// Cases returns what is measured, in the order of the report.
func Cases() []Case {
	return []Case{
		{"perm64_10m", "T32: 64 flows of 10 MB", 5},
		{"perm64_10m_cnp", "the same with CNPs as packets", 5},
		{"perm64_10m_series", "the same with every series sampled", 5},
		{"perm1024_1m", "1,024 flows of 1 MB in three tiers", 3},
		{"perm11664_1m", "11,664 flows of 1 MB in three tiers", 1},
	}
}

// load reads the scenario of a case; sets change it as --set does.
func load(name string, sets ...string) (*scenario.Scenario, error) {
	file := path.Join("cases", name+".yaml")
	text, err := files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return scenario.ParseSet(file, text, sets)
}
