package report

import (
	"bufio"
	"io"
	"strconv"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// out is where lines go; its first error stays and comes back from Flush.
type out struct{ *bufio.Writer }

func newOut(w io.Writer) out { return out{bufio.NewWriterSize(w, 1<<16)} }

// row is one line of a table for programs, made cell by cell.
type row struct {
	b     []byte
	sep   byte
	begun bool // has a cell, be it an empty one
}

func (r *row) next() {
	if r.begun {
		r.b = append(r.b, r.sep)
	}
	r.begun = true
}

// empty adds n cells without content.
func (r *row) empty(n int) {
	for range n {
		r.next()
	}
}

func (r *row) int(n int64) *row {
	r.next()
	r.b = strconv.AppendInt(r.b, n, 10)
	return r
}

func (r *row) uint(n uint64) *row {
	r.next()
	r.b = strconv.AppendUint(r.b, n, 10)
	return r
}

// time writes an instant in nanoseconds; nothing for Never.
func (r *row) time(t sim.Time) *row {
	r.next()
	if t != sim.Never {
		r.b = nanos(r.b, t)
	}
	return r
}

func (r *row) float(f float64, after int) *row {
	r.next()
	r.b = strconv.AppendFloat(r.b, f, 'f', after, 64)
	return r
}

func (r *row) bool(v bool) *row {
	if v {
		return r.int(1)
	}
	return r.int(0)
}

// end writes the line.
func (r *row) end(o out) {
	_, _ = o.Write(append(r.b, '\n')) // kept by the writer
	r.b, r.begun = r.b[:0], false
}
