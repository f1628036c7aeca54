package scenario

import (
	"io"
	"slices"
	"strconv"
	"strings"
)

// SONiC is a config_db.json: the tables in which a SONiC switch keeps its
// buffers, maps, WRED profiles and schedulers, beside all others, which are
// kept as they are. Changes made with SetSwitch show in Write.
type SONiC struct {
	name string
	root *node
}

// ReadSONiC reads a config_db.json, or a file that has only some of its tables.
func ReadSONiC(name string, data []byte) (*SONiC, error) {
	root, err := readJSON(name, data)
	if err != nil {
		return nil, err
	}
	c := &SONiC{name: name, root: root}
	if root.kind != mapKind {
		return nil, errorAt(root.pos, "", "%s where tables are wanted", describe(root))
	}
	found := false
	for _, t := range root.entries {
		if !slices.Contains(sonicTables, t.key) {
			continue
		}
		found = true
		if t.val.kind != mapKind {
			return nil, errorAt(t.val.pos, t.key, "%s where rows are wanted", describe(t.val))
		}
		for _, row := range t.val.entries {
			if row.val.kind != mapKind {
				return nil, errorAt(row.val.pos, sonicPath(t.key, row.key, ""), "%s where fields are wanted", describe(row.val))
			}
		}
	}
	if !found {
		return nil, errorAt(root.pos, "", "none of the tables %s is there", strings.Join(sonicTables, ", "))
	}
	return c, nil
}

// sonicTables are the tables that are understood.
var sonicTables = []string{
	"BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG", "BUFFER_QUEUE", "PORT_QOS_MAP", "DSCP_TO_TC_MAP", "DOT1P_TO_TC_MAP",
	"TC_TO_PRIORITY_GROUP_MAP", "TC_TO_QUEUE_MAP", "WRED_PROFILE", "QUEUE", "SCHEDULER", "PFC_WD", "CABLE_LENGTH",
}

func sonicPath(table, row, field string) string {
	p := table + "|" + clip(row)
	if field != "" {
		p += "." + field
	}
	return p
}

// Write writes the file, four spaces a level.
func (c *SONiC) Write(w io.Writer) error {
	_, err := w.Write(append(c.root.appendJSON(nil, 0), '\n'))
	return err
}

// Cable is the length of a port's cable.
type Cable struct {
	Port   string
	Length Length
}

// Cables returns the table CABLE_LENGTH, in its order. 0m is a port without cable.
func (c *SONiC) Cables() ([]Cable, error) {
	var out []Cable
	for _, row := range c.table("CABLE_LENGTH") {
		for _, f := range row.val.entries {
			n, err := lengthKind.parse(f.val.text)
			if err != nil {
				return nil, errorAt(f.val.pos, sonicPath("CABLE_LENGTH", row.key, f.key), "%s", err)
			}
			out = append(out, Cable{f.key, Length(n)})
		}
	}
	return out, nil
}

// table returns the rows of a table.
func (c *SONiC) table(name string) []entry {
	if t := c.root.get(name); t != nil && t.kind == mapKind {
		return t.entries
	}
	return nil
}

// row returns one row of a table, or nil. Names may be written as references,
// "[TABLE|name]", as older releases do.
func (c *SONiC) row(table, ref string) *node {
	return c.root.get(table).get(sonicName(ref))
}

// sonicName takes the brackets and the table from a reference.
func sonicName(ref string) string {
	if s, ok := strings.CutPrefix(ref, "["); ok {
		s = strings.TrimSuffix(s, "]")
		if i := strings.LastIndexByte(s, '|'); i >= 0 {
			return s[i+1:]
		}
		return s
	}
	return ref
}

// fieldText returns the text of a field, "" if it is not there.
func (n *node) fieldText(key string) string {
	if f := n.get(key); f != nil && f.kind == scalarKind {
		return f.text
	}
	return ""
}

// portRows cuts the key "Ethernet0,Ethernet4|3-4" into ports and numbers.
func portRows(key string) (ports []string, from, to int, ok bool) {
	left, right, found := strings.Cut(key, "|")
	if !found {
		return nil, 0, 0, false
	}
	// Multi-chassis keys have the host and the chip before the port.
	if i := strings.LastIndexByte(right, '|'); i >= 0 {
		left, right = right[:i], right[i+1:]
		if j := strings.LastIndexByte(left, '|'); j >= 0 {
			left = left[j+1:]
		}
	}
	lo, hi, isRange := strings.Cut(right, "-")
	if !isRange {
		hi = lo
	}
	from, err1 := strconv.Atoi(lo)
	to, err2 := strconv.Atoi(hi)
	if err1 != nil || err2 != nil || from < 0 || to < from || to > 63 {
		return nil, 0, 0, false
	}
	return strings.Split(left, ","), from, to, true
}
