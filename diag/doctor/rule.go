package doctor

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

// Rule is one check, as its file has it.
type Rule struct {
	// ID is a letter and a number: P link, C counters, L lossless configuration, A
	// application, N network of the host; X and U are the user's.
	ID    string `yaml:"id"`
	Title string `yaml:"title"` // what is wrong when it fires
	Step  int    `yaml:"step"`  // 1 to 5, the operator's order
	// Each is what is looked at: host, device, port, netdev, qp, switch_port,
	// ecn_profile.
	Each Each `yaml:"each"`
	// Scope is where the rule makes sense: both, hardware, software, ours.
	Scope Scope `yaml:"scope"`

	// When says whether the rule applies at all; empty for always. Fail, Warn and
	// Info are conditions, the gravest that holds counts. Each may be a list of
	// alternatives: one that holds is enough, whatever of the others is not known.
	When string `yaml:"when"`
	Fail Cond   `yaml:"fail"`
	Warn Cond   `yaml:"warn"`
	Info Cond   `yaml:"info"`
	// Limits are the thresholds of the conditions, limit.name in them.
	Limits map[string]float64 `yaml:"limits"`
	// Let are named expressions for the conditions and texts, in order.
	Let []Let `yaml:"let"`
	// Evidence are expressions shown with a finding beside the facts that its
	// condition has read.
	Evidence []string `yaml:"evidence"`

	// Confidence, 0 to 1, is how sure the cause is where the condition holds; Sure is
	// a condition that raises it to SureConfidence, such as an error that the program
	// has printed.
	Confidence     float64 `yaml:"confidence"`
	Sure           Cond    `yaml:"sure"`
	SureConfidence float64 `yaml:"sure_confidence"`

	Cause  string    `yaml:"cause"`
	Why    string    `yaml:"why"`
	Fix    []FixLine `yaml:"fix"`
	Verify string    `yaml:"verify"`
	// Explains are rules whose findings are symptoms of this one: they rank below it.
	Explains []string `yaml:"explains"`
	Source   string   `yaml:"source"`

	place string // file:line
	prog  programs
}

// Cond are the alternatives of a condition; in a file, one string or a list.
type Cond []string

// UnmarshalYAML reads a string or a list of strings.
func (c *Cond) UnmarshalYAML(unmarshal func(any) error) error {
	var one string
	if err := unmarshal(&one); err == nil {
		*c = Cond{one}
		return nil
	}
	var list []string
	if err := unmarshal(&list); err != nil {
		return err
	}
	*c = list
	return nil
}

// Let is a named expression of a rule.
type Let struct {
	Name string `yaml:"name"`
	Expr string `yaml:"expr"`
}

// Each is a kind of thing that a rule looks at.
type Each string

// Kinds of things.
const (
	EachHost       Each = "host"
	EachDevice     Each = "device"
	EachPort       Each = "port"
	EachNetdev     Each = "netdev"
	EachQP         Each = "qp"
	EachSwitchPort Each = "switch_port"
	EachProfile    Each = "ecn_profile"
)

// Scope is the kind of device that a rule is for.
type Scope string

// Scopes.
const (
	Both     Scope = "both"
	Hardware Scope = "hardware"
	Software Scope = "software" // packets go through the kernel's network stack
	Ours     Scope = "ours"
)

// MaxRuleFile is the size of a file of rules at most, in bytes.
const MaxRuleFile = 1 << 18

// What a file and a rule may have at most.
const (
	maxRules = 1000
	maxLets  = 50
)

var ruleID = regexp.MustCompile(`^[A-Z][0-9]{2,3}$`)

// Parse reads a file of rules: a YAML list. Errors name file, line and column.
func Parse(name string, text []byte) ([]*Rule, error) {
	if len(text) > MaxRuleFile {
		return nil, fmt.Errorf("%s: %d bytes, must be at most %d", name, len(text), MaxRuleFile)
	}
	if err := checkNesting(name, text); err != nil {
		return nil, err
	}
	var rules []*Rule
	if err := yaml.UnmarshalWithOptions(text, &rules, yaml.Strict()); err != nil {
		return nil, yamlError(name, err)
	}
	switch {
	case len(rules) == 0:
		return nil, fmt.Errorf("%s:1: no rule is in it; %s", name, fileForm)
	case len(rules) > maxRules:
		return nil, fmt.Errorf("%s: %d rules, must be at most %d", name, len(rules), maxRules)
	}
	lines := newRuleLines(text)
	first := map[ruleKey]*Rule{}
	for i, r := range rules {
		if r == nil {
			return nil, fmt.Errorf("%s:%d: rule %d is empty; %s", name, lines.begin(i), i+1, fileForm)
		}
		r.place = fmt.Sprintf("%s:%d", name, lines.begin(i))
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("%s:%d: rule %s: %w", name, lines.of(i, err.Error()), r.ID, err)
		}
		key := ruleKey{r.ID, r.Each}
		if twin := first[key]; twin != nil {
			return nil, fmt.Errorf("%s: rule %s for each %s is there already, at %s", r.place, r.ID, r.Each, twin.place)
		}
		first[key] = r
	}
	return rules, nil
}

// ruleKey is what tells rules apart: several may share an id where they look at
// different kinds of things.
type ruleKey struct {
	id   string
	each Each
}

// check holds a rule against the format and compiles it. The error begins with the
// field that it is about.
func (r *Rule) check() error {
	bad := fmt.Errorf
	if r.Scope == "" {
		r.Scope = Both
	}
	if r.SureConfidence == 0 {
		r.SureConfidence = 0.95
	}
	switch {
	case !ruleID.MatchString(r.ID):
		return bad("id is %q, must be a capital letter and two or three digits", r.ID)
	case r.Title == "":
		return bad("title must be set")
	case r.Step < 1 || r.Step > 5:
		return bad("step is %d, must be 1 to 5", r.Step)
	case !r.Each.valid():
		return bad("each is %q, must be host, device, port, netdev, qp, switch_port or ecn_profile", r.Each)
	case !r.Scope.valid():
		return bad("scope is %q, must be both, hardware, software or ours", r.Scope)
	case len(r.Fail) == 0 && len(r.Warn) == 0 && len(r.Info) == 0:
		return bad("none of fail, warn and info is set")
	case r.Confidence <= 0 || r.Confidence > 1:
		return bad("confidence is %v, must be above 0 and at most 1", r.Confidence)
	case r.SureConfidence <= 0 || r.SureConfidence > 1:
		return bad("sure_confidence is %v, must be above 0 and at most 1", r.SureConfidence)
	case len(r.Let) > maxLets:
		return bad("let has %d names, must be at most %d", len(r.Let), maxLets)
	case r.Cause == "" || r.Why == "" || len(r.Fix) == 0:
		return bad("cause, why and fix must be set")
	}
	for i := range r.Fix {
		if err := r.Fix[i].check(); err != nil {
			return err
		}
	}
	for _, id := range r.Explains {
		if !ruleID.MatchString(id) {
			return bad("explains %q, which is no rule's id", id)
		}
	}
	if err := r.compile(); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

func (e Each) valid() bool {
	switch e {
	case EachHost, EachDevice, EachPort, EachNetdev, EachQP, EachSwitchPort, EachProfile:
		return true
	}
	return false
}

func (s Scope) valid() bool {
	switch s {
	case Both, Hardware, Software, Ours:
		return true
	}
	return false
}
