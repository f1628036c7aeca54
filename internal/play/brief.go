package play

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/lab"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Brief runs a scenario of the library with its variants and tells in half a
// screen what it shows: the verdict, the rate of its longest flow over time in
// each, what was gained, and what that costs. Where the context ends it tells
// nothing and returns its error.
func Brief(ctx context.Context, w io.Writer, name string, bar *Bar) error {
	src, err := Find(name)
	if err != nil {
		return err
	}
	changes := []lab.Variant{{Name: "as it is"}}
	changes = append(changes, lab.Variants(name)...)
	var sides []Side
	var verdict string
	for i, v := range changes {
		c := Change{}
		if i > 0 {
			c.Sets = v.All()
		}
		sc, err := src.Scenario(c)
		if err != nil {
			return err
		}
		o, err := sc.Run(ctx, src.Files(), Options{Bar: bar})
		if err != nil {
			return err
		}
		if o.Stopped {
			return context.Canceled
		}
		if i == 0 {
			verdict = o.Story().Line()
		}
		sides = append(sides, Side{v.Name, o.Result})
	}
	var b bytes.Buffer
	r := sides[0].Run
	Paragraph(&b, "  ", r.Title+".")
	fmt.Fprintf(&b, "  %s: verbena sim run %s\n\n", sizeText(r), name)
	Paragraph(&b, "  ", "as it is: "+verdict+".")
	for _, v := range changes[1:] {
		Paragraph(&b, "  ", fmt.Sprintf("%s: %s (%s)", v.Name, v.Says, strings.Join(v.Sets, " ")))
	}
	fmt.Fprintln(&b)
	sparks := NewGrid("<", "<", "<")
	for i := range sides {
		r := sides[i].Run
		for _, id := range tellingFlows(r, 1) {
			f := &r.Flows[id]
			n := names{r}
			top := int64(n.line(f))
			to := r.End
			if f.State == result.Finished {
				to = f.Finish
			}
			line := spark(series(r, result.FlowRate, -1, -1, id), r.End, f.Start, to, top, false)
			sparks.Row(sides[i].Name, line, fmt.Sprintf("%s, 0 to %s over %s", n.flow(id), rateText(sim.Rate(top)), timeText(r.End)))
		}
	}
	for _, l := range sparks.Lines()[1:] {
		fmt.Fprintln(&b, "  "+l)
	}
	fmt.Fprintln(&b)
	var beside bytes.Buffer
	TellBeside(&beside, "", sides, nil)
	_, text, _ := strings.Cut(beside.String(), "\n")
	b.WriteString(text)
	_, err = w.Write(b.Bytes())
	return err
}
