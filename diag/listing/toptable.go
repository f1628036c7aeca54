package listing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// topColumn is a column: as wide as given, the first one and those named left aligned
// to the left.
type topColumn struct {
	name  string
	width int
	left  bool
}

type topRow struct {
	cells   []string
	trouble bool
}

type topLine struct {
	text          string
	bold, trouble bool
}

// Columns in the order in which they are worth their room.
var (
	portColumns = []topColumn{
		{"PORT", 16, true},
		{"TX Gb/s", 9, false},
		{"RX Gb/s", 9, false},
		{"RETRANS", 8, false},
		{"OOS", 8, false},
		{"CNP", 8, false},
		{"ECN", 8, false},
		{"RNR", 8, false},
		{"TX pkt/s", 9, false},
		{"RX pkt/s", 9, false},
		{"HELD BY", 24, true},
	}
	pauseColumns = []topColumn{
		{"PAUSE", 16, true}, {"PRIORITY", 9, false}, {"RX/s", 9, false}, {"TX/s", 8, false}, {"RX %", 8, false}, {"TX %", 8, false},
	}
	qpColumns = []topColumn{
		{"QP", 16, true},
		{"TX Gb/s", 9, false},
		{"RX Gb/s", 9, false},
		{"RETRANS", 8, false},
		{"CNP", 8, false},
		{"PROGRAM", 16, true},
		{"ECN", 8, false},
		{"TYPE", 5, true},
		{"STATE", 6, true},
		{"REMOTE", 39, true},
	}
)

func (f *TopFrame) portRows() []topRow {
	var rows []topRow
	for i := range f.Ports {
		p := &f.Ports[i]
		held := p.Program
		if p.PID != 0 {
			held = fmt.Sprintf("%s (%d)", p.Program, p.PID)
		}
		if p.BytesOfNetdev != "" {
			held = "bytes are those of " + p.BytesOfNetdev
		}
		rows = append(rows, topRow{
			[]string{
				p.Device + "/" + strconv.Itoa(p.Port), gbps(p.TxBits), gbps(p.RxBits), perSecond(p.Retransmits), perSecond(p.OutOfSequence),
				perSecond(p.CNPs), perSecond(p.ECN), perSecond(p.RNR), perSecond(p.TxPackets), perSecond(p.RxPackets), held,
			}, or0(p.Retransmits)+or0(p.OutOfSequence)+or0(p.RNR) > 0,
		})
	}
	return rows
}

func (f *TopFrame) pauseRows() []topRow {
	share := func(p *float64) string {
		if p == nil {
			return "-"
		}
		return strconv.FormatFloat(*p*100, 'f', 1, 64)
	}
	var rows []topRow
	for _, p := range f.Pause {
		rows = append(rows, topRow{[]string{p.Interface, strconv.Itoa(p.Priority), perSecond(p.RxFrames), perSecond(p.TxFrames), share(p.RxShare), share(p.TxShare)}, true})
	}
	return rows
}

func (f *TopFrame) qpRows() []topRow {
	var rows []topRow
	for i := range f.QPs {
		q := &f.QPs[i]
		rows = append(rows, topRow{
			[]string{
				q.Device + ":" + strconv.FormatUint(uint64(q.QPN), 10) + others(q.QPs), gbps(q.TxBits), gbps(q.RxBits),
				perSecond(q.Retransmits), perSecond(q.CNPs), q.Program, perSecond(q.ECN), q.Type, q.State, q.Remote,
			}, or0(q.Retransmits) > 0,
		})
	}
	return rows
}

// firstWidth is how wide a first column is: 16 characters, more where names are longer and
// the screen has room for them.
func firstWidth(rows []topRow, width int) int {
	const least, most = 16, 40
	n := least
	for _, r := range rows {
		n = max(n, len([]rune(r.cells[0])))
	}
	room := most
	if width > 0 {
		room = min(most, max(least, width/4))
	}
	return min(n, room)
}

// drawTable draws as many columns as there is room for, at least two.
func drawTable(columns []topColumn, rows []topRow, width int) []topLine {
	columns = slices.Clone(columns)
	columns[0].width = firstWidth(rows, width)
	used, n := 0, 0
	for _, c := range columns {
		if width > 0 && used+c.width > width && n >= 2 {
			break
		}
		used += c.width + 1
		n++
	}
	line := func(cell func(i int) string) string {
		var b strings.Builder
		for i, c := range columns[:n] {
			if i > 0 {
				b.WriteByte(' ')
			}
			text := shorten(cell(i), c.width)
			if i == 0 {
				text = squeeze(cell(i), c.width)
			}
			pad := strings.Repeat(" ", c.width-len([]rune(text)))
			if c.left {
				b.WriteString(text + pad)
			} else {
				b.WriteString(pad + text)
			}
		}
		return b.String()
	}
	lines := []topLine{{text: line(func(i int) string { return columns[i].name }), bold: true}}
	for _, r := range rows {
		lines = append(lines, topLine{text: line(func(i int) string { return r.cells[i] }), trouble: r.trouble})
	}
	return lines
}

// wrap breaks a text at its blanks.
func wrap(text string, width int) []string {
	if width <= 0 {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// others are the queue pairs that are counted with the first of them: "+3".
func others(together int) string {
	if together < 2 {
		return ""
	}
	return "+" + strconv.Itoa(together-1)
}
