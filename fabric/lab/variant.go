package lab

// Variant is a change to a scenario that shows its other side: the cure, or
// what the cure costs. A run of the scenario shows it beside.
type Variant struct {
	Name string   // for tables and file names: "kmin-256KB"
	Sets []string // overrides, key=value
	Says string   // what it shows, in one line
}

// Variants returns those of a scenario; nil if it has none. The slice is the
// caller's.
func Variants(name string) []Variant {
	switch name {
	case "cross-subnet-ecn":
		return []Variant{{
			Name: "kmin-256KB",
			Sets: []string{"switch.ecn.kmin=256KB", "switch.ecn.kmax=256KB"},
			Says: "an ECN threshold above the bursts",
		}}
	}
	return nil
}
