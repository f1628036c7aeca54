package work

import (
	"io"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/topo/token"
)

// CSV reads a trace with one flow a line:
//
//	start,src,dst,bytes,prio,op
//	0.5ms,host0,host9,1000000,3,write
//
// prio and op may be left out or empty; an operation is write, send, read or
// tcp. A time without a unit is in seconds. The first line may give names, and
// then the columns are in their order. name is the file's, for errors.
func (r Reader) CSV(in io.Reader, name string) Stream {
	t := token.NewReader(in, name)
	t.Comma = ','
	return r.stream(t, &csvFlows{r: r})
}

const (
	colStart = iota
	colSrc
	colDst
	colBytes
	colPrio
	colOp
	numCols
	needCols = colPrio
)

var colNames = [numCols]string{"start", "src", "dst", "bytes", "prio", "op"}

type csvFlows struct {
	r     Reader
	begun bool
	cols  []int // by place
}

func (c *csvFlows) next(in *token.Reader) (Flow, token.Field, bool, error) {
	if !c.begun {
		c.begun = true
		c.cols = []int{colStart, colSrc, colDst, colBytes, colPrio, colOp}
		if f, ok := in.Peek(); ok && !strings.ContainsAny(f.Text, "0123456789") {
			if err := c.header(in); err != nil {
				return Flow{}, f, false, err
			}
		}
	}
	first, ok := in.Next()
	if !ok {
		return Flow{}, first, false, in.Err()
	}
	var row [numCols]token.Field
	n := 0
	for f := first; ; n++ {
		if n == len(c.cols) {
			return Flow{}, first, false, in.Fail(f, "more than %d columns", len(c.cols))
		}
		row[c.cols[n]] = f
		if !in.More() {
			break
		}
		f, _ = in.Next()
	}
	if err := in.Err(); err != nil {
		return Flow{}, first, false, err
	}
	f, err := c.flow(in, &row, first)
	return f, first, err == nil, err
}

// header reads the names of the columns.
func (c *csvFlows) header(in *token.Reader) error {
	c.cols = c.cols[:0]
	var seen [numCols]bool
	first, _ := in.Peek()
	for len(c.cols) == 0 || in.More() {
		f, ok := in.Next()
		if !ok {
			return in.Err()
		}
		col := -1
		for i, n := range colNames {
			if strings.EqualFold(n, f.Text) {
				col = i
			}
		}
		switch {
		case col < 0:
			return in.Fail(f, "column %.40q is not known: there are %s", f.Text, strings.Join(colNames[:], ", "))
		case seen[col]:
			return in.Fail(f, "column %s comes twice", f.Text)
		}
		seen[col] = true
		c.cols = append(c.cols, col)
	}
	for i := range needCols {
		if !seen[i] {
			return in.Fail(first, "column %s is missing", colNames[i])
		}
	}
	return in.Err()
}

func (c *csvFlows) flow(in *token.Reader, row *[numCols]token.Field, first token.Field) (Flow, error) {
	for i := range needCols {
		if row[i].Line == 0 {
			return Flow{}, in.Fail(first, "column %s is missing", colNames[i])
		}
		if row[i].Text == "" {
			return Flow{}, in.Fail(row[i], "%s is empty", colNames[i])
		}
	}
	start, err := in.Time(row[colStart], "start", MaxTime)
	if err != nil {
		return Flow{}, err
	}
	from, to, err := c.r.ends(in, row[colSrc], row[colDst])
	if err != nil {
		return Flow{}, err
	}
	bytes, err := in.Int(row[colBytes], "bytes", 1, MaxBytes)
	if err != nil {
		return Flow{}, err
	}
	f := flow(&c.r.As, from, to, bytes, start)
	if p := row[colPrio]; p.Text != "" {
		prio, err := in.Int(p, "priority", 0, 7)
		if err != nil {
			return Flow{}, err
		}
		f.Prio = int8(prio)
	}
	if o := row[colOp]; o.Text != "" {
		op, ok := ParseOp(o.Text)
		if !ok {
			return Flow{}, in.Fail(o, "operation %.40q is not write, send, read or tcp", o.Text)
		}
		f.Op = op
	}
	return f, nil
}

// ParseOp returns the operation of a name, upper or lower case.
func ParseOp(name string) (Op, bool) {
	for op := Write; op <= TCP; op++ {
		if strings.EqualFold(op.String(), name) {
			return op, true
		}
	}
	return 0, false
}
