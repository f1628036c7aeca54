package export

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// scrape is one answer in the making.
type scrape struct {
	page       *page
	unreadable int
	leftOut    int
}

// sample adds one sample. A second one with the same labels is left out.
func (s *scrape) sample(name string, value float64, labels ...string) {
	if len(s.page.seen) >= MaxSamples {
		s.leftOut++
		return
	}
	s.always(name, value, labels...)
}

func (s *scrape) always(name string, value float64, labels ...string) {
	d, ok := s.page.desc.by[name]
	if !ok || len(labels) != len(d.labels) {
		return
	}
	for i := range labels {
		labels[i] = label(labels[i])
	}
	if !s.page.add(d, value, labels) {
		s.leftOut++
	}
}

// reading adds a reading times a factor, or counts why not.
func (s *scrape) reading(name string, v snapshot.Value[uint64], factor float64, labels ...string) {
	if n, ok := v.Get(); ok {
		s.sample(name, scaled(n, factor), labels...)
		return
	}
	if !v.IsZero() {
		s.unreadable++
	}
}

// scaled is exact where a unit is a whole number of the other.
func scaled(n uint64, factor float64) float64 {
	if factor < 1 {
		return float64(n) / math.Round(1/factor)
	}
	return float64(n) * factor
}

// number is reading for the numbers of the model that are no counters.
func number[T ~int | ~int64](s *scrape, name string, v snapshot.Value[T], factor float64, labels ...string) {
	if n, ok := v.Get(); ok {
		s.sample(name, float64(n)*factor, labels...)
		return
	}
	if !v.IsZero() {
		s.unreadable++
	}
}

// label makes any text fit to be the value of a label: it may come from another
// process or a strange file.
func label(text string) string {
	if len(text) > maxLabel {
		text = text[:maxLabel]
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "?")
	}
	return text
}
