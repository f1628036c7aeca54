package benchsim

// Metric is what a row judges.
type Metric string

// The metrics.
const (
	HopRate   Metric = "M hops/s" // data packet-hops over processor time
	PeakRSS   Metric = "MB"       // 10⁶ bytes resident at most
	Processor Metric = "CPU s"
	Slowdown  Metric = "× CPU" // processor time over that of another case
)

// LessIsBetter reports whether goal and floor are upper bounds.
func (m Metric) LessIsBetter() bool { return m != HopRate }

// Row is one figure with what it shall be.
type Row struct {
	Case   string
	Metric Metric
	Than   string // Slowdown: the other case
	// Goal is what is aimed at, Floor what is promised; 0: none.
	Goal, Floor float64
}

// Rows returns what is judged.
func Rows() []Row {
	return []Row{
		{Case: "perm64_10m", Metric: HopRate, Goal: 2, Floor: 1},
		{Case: "perm64_10m_cnp", Metric: HopRate, Goal: 2, Floor: 1},
		{Case: "perm64_10m_series", Metric: Slowdown, Than: "perm64_10m", Goal: 1.1, Floor: 1.25},
		{Case: "perm1024_1m", Metric: HopRate, Goal: 0.8, Floor: 0.4},
		{Case: "perm1024_1m", Metric: PeakRSS, Goal: 150, Floor: 150},
		{Case: "perm11664_1m", Metric: Processor, Goal: 300},
		{Case: "perm11664_1m", Metric: PeakRSS, Goal: 1500},
	}
}

// of returns the metric of the best run of a case.
func (m Metric) of(f, than *Figures) float64 {
	switch m {
	case HopRate:
		return f.HopsPerSecond() / 1e6
	case PeakRSS:
		return float64(f.PeakBytes) / 1e6
	case Processor:
		return f.CPUSeconds
	case Slowdown:
		if than != nil {
			return f.CPUSeconds / than.CPUSeconds
		}
	}
	return 0
}

// Verdict is what a figure means for its row.
type Verdict string

// The verdicts.
const (
	OK         Verdict = "ok"
	BelowGoal  Verdict = "below goal"
	BelowFloor Verdict = "BELOW FLOOR"
	NotKnown   Verdict = "not known"
)

// gateAt is the part of its floor that a figure must reach to pass the gate:
// other programs on the machine take their part of its caches.
const gateAt = 0.8

// Judge returns the verdict on a figure and whether it passes the gate.
func (r *Row) Judge(v float64) (Verdict, bool) {
	if !(v > 0) {
		return NotKnown, true
	}
	goal, floor := r.Goal, r.Floor
	if floor == 0 {
		floor = goal
		if !r.Metric.LessIsBetter() {
			floor = 0
		}
	}
	noFloor := r.Floor == 0
	if r.Metric.LessIsBetter() {
		v, goal, floor = 1/v, 1/goal, 1/floor
	}
	switch {
	case v >= goal:
		return OK, true
	case noFloor || v >= floor:
		return BelowGoal, true
	}
	return BelowFloor, v >= gateAt*floor
}

// Rival is what another simulator does with a case.
type Rival struct {
	Case string `json:"case"`
	Name string `json:"name"`
	// Hops is its data packet-hops a second, in millions, on one core; 0 if it did
	// not finish.
	Hops float64 `json:"mhops_per_s,omitempty"`
	Note string  `json:"note"`
}

// Rivals returns figures of others, measured once, on a machine of the same
// kind: with the published programs and their own scenario files, data
// packet-hops alone, as they acknowledge every packet half of all.
func Rivals() []Rival {
	return []Rival{
		{"perm64_10m", "HPCC's ns-3, DCQCN", 0.0575, "PFC, shared buffer, an ACK for each packet"},
		{"perm64_10m", "csg-htsim, RoCE", 0.83, "no congestion control, no shared buffer, an ACK for each packet"},
		{"perm1024_1m", "HPCC's ns-3, DCQCN", 0, "not finished after 560 s"},
		{"perm1024_1m", "csg-htsim, RoCE", 0.217, "no congestion control, no shared buffer, an ACK for each packet; 133 MB"},
	}
}
