package play

import (
	"strings"

	"github.com/verbena-rdma/verbena/fabric/report"
)

// Beside is what TellBeside tells, for the page: lead, which says what the sides are, a
// list of the quantities with every side's value, and what each of the others gains and
// costs. A table would be to be scrolled sideways on a phone.
func Beside(title string, lead []string, sides []Side) report.Section {
	s := report.Section{Title: title}
	for _, l := range lead {
		s.Paras = append(s.Paras, report.Para{Text: l})
	}
	rows := Rows(sides, nil)
	for i := range rows {
		c := rows[i].Cells
		var cells []string
		for j := range c {
			cells = append(cells, sides[j].Name+" "+c[j].text())
		}
		text := rows[i].What + ": " + strings.Join(cells, "; ")
		if len(c) == 2 && !c[0].None && !c[1].None {
			if f := factorText(c[0].V, c[1].V); f != "" {
				text += " (" + f + ")"
			}
		}
		s.Paras = append(s.Paras, report.Para{Mark: "-", Text: text})
	}
	for _, l := range balances(sides, rows) {
		s.Paras = append(s.Paras, report.Para{Text: l})
	}
	return s
}

// expected is what tellChecks tells, for the page: each expectation with its source.
func expected(list []Check) report.Section {
	s := report.Section{Title: "EXPECTED"}
	for i := range list {
		c := &list[i]
		s.Paras = append(s.Paras, report.Para{Mark: c.mark(), Text: c.What + ": " + c.text() + "; expected " + c.Bound})
		if c.Source != "" {
			s.Paras = append(s.Paras, report.Para{Indent: 4, Text: "source: " + c.Source})
		}
	}
	return s
}
