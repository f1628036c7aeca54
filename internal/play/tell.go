package play

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/explain"
	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/result"
)

// Telling is how much is told of a run.
type Telling uint8

// The lengths.
const (
	Short Telling = iota // two screens
	Long                 // everything that fits a terminal
)

// The bounds of the short form, in lines.
const (
	sectionLines = 18 // of a section of the explanation
	storyLines   = 38 // of all of them, with their titles
)

// Tell writes what became of the run: verdict and explanation first, then what
// it looked like over time, and tables.
func (o *Outcome) Tell(w io.Writer, long Telling) error {
	var b bytes.Buffer
	o.head(&b)
	story := o.Story()
	if long == Long {
		_ = story.Text(&b, width)
		fmt.Fprintln(&b)
		tellTime(&b, o.Result)
		_ = report.WriteText(&b, o.Result)
	} else {
		tellStory(&b, story)
		tellTime(&b, o.Result)
		tellFlows(&b, o.Result)
		tellPorts(&b, o.Result)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// TellChecks writes the expectations: value, bound, and whether it was met.
func (o *Outcome) TellChecks(w io.Writer, long Telling) error {
	var b bytes.Buffer
	tellChecks(&b, o.Checks, long == Long)
	_, err := w.Write(b.Bytes())
	return err
}

// head says what was run and how it ended.
func (o *Outcome) head(b *bytes.Buffer) {
	r := o.Result
	title := r.Name
	if r.Title != "" {
		title += ": " + r.Title
	}
	Paragraph(b, "", title)
	if r.Interrupted && o.Stopped {
		fmt.Fprintf(b, "INTERRUPTED at %s of virtual time: what follows is of that part alone.\n", timeText(r.End))
	}
	fmt.Fprintf(b, "%s; %s simulated, seed %d, digest %016x\n\n", sizeText(r), timeText(r.End), r.Seed, r.Digest)
}

// sizeText says how large a network is.
func sizeText(r *result.Run) string {
	hosts, switches := 0, 0
	for i := range r.Nodes {
		if r.Nodes[i].Switch {
			switches++
		} else {
			hosts++
		}
	}
	return fmt.Sprintf("%s, %s, %s", plural(hosts, "host"), plural(switches, "switch"), plural(len(r.Flows), "flow"))
}

// tellStory writes the explanation, each section and all together bounded. What
// was left out is named.
func tellStory(w io.Writer, s *explain.Story) {
	left := storyLines
	var cut []string
	for _, sec := range s.Sections(width - 2) {
		lines := strings.Split(sec.Text, "\n")
		most := min(sectionLines, left-1)
		if most < min(3, len(lines)) {
			cut = append(cut, strings.ToLower(sec.Title))
			continue
		}
		kept := lines[:shorter(lines, most)]
		left -= len(kept) + 2
		fmt.Fprintln(w, sec.Title)
		for _, l := range kept {
			fmt.Fprintln(w, "  "+l)
		}
		if n := len(lines) - len(kept); n > 0 {
			fmt.Fprintf(w, "  … %s with -v\n", plural(n, "more line"))
		}
		fmt.Fprintln(w)
	}
	if len(cut) > 0 {
		Paragraph(w, "", "With -v also: "+strings.Join(cut, ", ")+".")
		fmt.Fprintln(w)
	}
}

// shorter returns how many lines to keep, at most most, so that the last
// Paragraph that is kept is whole, if one is.
func shorter(lines []string, most int) int {
	if len(lines) <= most+1 { // one more line costs no more than to say so
		return len(lines)
	}
	for k := most; k > 0; k-- {
		next := strings.TrimLeft(lines[k], " ")
		if strings.HasPrefix(next, "- ") || strings.HasPrefix(next, "└ ") || len(next) > 2 && next[0] >= '1' && next[0] <= '9' && next[1] == '.' ||
			strings.HasSuffix(lines[k-1], ".") {
			return k
		}
	}
	return most
}
