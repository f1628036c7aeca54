package monitor

import (
	"encoding/json"
	"math"
	"strconv"
)

// Bounds of what is kept of one host: ten minutes at one look a second.
const (
	Samples   = 600
	MaxSeries = 512
)

// ring keeps the last values of many series, all at the same instants. A value that was
// not there is NaN.
type ring struct {
	seq    uint64  // samples so far; the next one goes to slot seq % size
	times  []int64 // ms since 1970
	order  []key
	values map[key][]float64
	left   int // series beyond MaxSeries at the last push
}

func newRing(size int) *ring {
	return &ring{times: make([]int64, size), values: map[key][]float64{}}
}

// push adds an instant.
func (r *ring) push(at int64, points []point) {
	slot := int(r.seq % uint64(len(r.times)))
	r.times[slot] = at
	for _, k := range r.order {
		r.values[k][slot] = math.NaN()
	}
	r.left = 0
	for _, p := range points {
		v, ok := r.values[p.key]
		if !ok {
			if len(r.order) >= MaxSeries {
				r.left++
				continue
			}
			v = make([]float64, len(r.times))
			for i := range v {
				v[i] = math.NaN()
			}
			r.order = append(r.order, p.key)
			r.values[p.key] = v
		}
		v[slot] = p.value
	}
	r.seq++
	if r.seq%uint64(len(r.times)) == 0 {
		r.forget()
	}
}

// forget drops series that have had no value for the whole ring: devices that are gone.
func (r *ring) forget() {
	kept := r.order[:0]
	for _, k := range r.order {
		if empty(r.values[k]) {
			delete(r.values, k)
			continue
		}
		kept = append(kept, k)
	}
	r.order = kept
}

func empty(v []float64) bool {
	for _, x := range v {
		if !math.IsNaN(x) {
			return false
		}
	}
	return true
}

// series is one line in an answer.
type series struct {
	key
	Values []number `json:"values"`
}

// since returns what came after the first seq samples, as far as it is still there.
func (r *ring) since(seq uint64) (times []int64, all []series) {
	first := uint64(0)
	if n := uint64(len(r.times)); r.seq > n {
		first = r.seq - n
	}
	if seq > first && seq <= r.seq {
		first = seq
	}
	times = []int64{}
	for i := first; i < r.seq; i++ {
		times = append(times, r.times[i%uint64(len(r.times))])
	}
	all = make([]series, 0, len(r.order))
	for _, k := range r.order {
		s := series{k, make([]number, 0, len(times))}
		for i := first; i < r.seq; i++ {
			s.Values = append(s.Values, number(r.values[k][i%uint64(len(r.times))]))
		}
		all = append(all, s)
	}
	return times, all
}

// number is a float that JSON can have: NaN is null.
type number float64

var _ json.Marshaler = number(0)

// MarshalJSON writes five significant digits, which is what a plot can show.
func (n number) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', 5, 64), nil
}
