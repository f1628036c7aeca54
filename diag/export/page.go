package export

import (
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"
)

// page is an answer in Prometheus' text format (version 0.0.4) in the making: the lines
// of each metric by themselves, since samples come in the order of the host. Its memory
// is kept from scrape to scrape.
type page struct {
	desc  *descs
	lines [][]byte // by the number of the metric
	// seen are the samples so far, as hashes of name and labels: one twice would spoil
	// the answer. Of 50,000 samples two have one hash once in 10¹⁰ scrapes; then one is
	// left out and counted.
	seen map[uint64]struct{}
	seed maphash.Seed
}

func newPage(d *descs) *page {
	return &page{desc: d, lines: make([][]byte, len(d.all)), seen: map[uint64]struct{}{}, seed: maphash.MakeSeed()}
}

// maxKeptPage is how much memory of a metric's lines is kept for the next scrape.
const maxKeptPage = 256 << 10

// reset makes the page empty.
func (p *page) reset() {
	for i := range p.lines {
		if cap(p.lines[i]) > maxKeptPage {
			p.lines[i] = nil
		}
		p.lines[i] = p.lines[i][:0]
	}
	if len(p.seen) > MaxSamples/8 {
		p.seen = map[uint64]struct{}{}
	}
	clear(p.seen)
}

// add adds a sample, and reports whether it was not there yet. There are as many labels
// as the metric has.
func (p *page) add(d *described, value float64, labels []string) bool {
	b := p.lines[d.number]
	start := len(b)
	b = append(b, d.name...)
	for i, at := range d.order {
		b = append(b, d.before[i]...)
		b = appendLabel(b, labels[at])
	}
	if len(d.order) > 0 {
		b = append(b, `"}`...)
	}
	key := maphash.Bytes(p.seed, b[start:])
	if _, twice := p.seen[key]; twice {
		p.lines[d.number] = b[:start]
		return false
	}
	p.seen[key] = struct{}{}
	b = append(b, ' ')
	b = appendFloat(b, value)
	p.lines[d.number] = append(b, '\n')
	return true
}

// appendTo appends the text: metrics in the order of their names, each with its help and
// type; those without a sample are left out.
func (p *page) appendTo(b []byte) []byte {
	n := 0
	for i, lines := range p.lines {
		if len(lines) > 0 {
			n += len(lines) + len(p.desc.all[i].head)
		}
	}
	b = slices.Grow(b, n)
	for _, i := range p.desc.sorted {
		if lines := p.lines[i]; len(lines) > 0 {
			b = append(b, p.desc.all[i].head...)
			b = append(b, lines...)
		}
	}
	return b
}

// appendLabel appends a label's value with what the format wants escaped.
func appendLabel(b []byte, v string) []byte {
	if strings.IndexByte(v, '"') < 0 && strings.IndexByte(v, '\\') < 0 && strings.IndexByte(v, '\n') < 0 {
		return append(b, v...)
	}
	for i := range len(v) {
		switch v[i] {
		case '"', '\\':
			b = append(b, '\\', v[i])
		case '\n':
			b = append(b, `\n`...)
		default:
			b = append(b, v[i])
		}
	}
	return b
}

func appendFloat(b []byte, v float64) []byte {
	if v >= 0 && v < 1e6 && v == math.Trunc(v) { // most of them; the text is the same
		return strconv.AppendUint(b, uint64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64) // infinities are as the format has them
}
