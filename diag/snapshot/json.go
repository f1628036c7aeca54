package snapshot

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Snapshots are thousands of values and counters, and encoding/json is slow where every
// one of them has methods of its own: it starts anew in each. So the common kinds are
// written and read here, to the same text. What is not as this package writes it is left
// to encoding/json, whose errors and tolerance then hold.

// appendKnown appends a reading of a common kind.
func appendKnown(b []byte, v any) (_ []byte, ok bool) {
	switch v := v.(type) {
	case *string:
		return appendText(b, *v)
	case *int:
		return strconv.AppendInt(b, int64(*v), 10), true
	case *int64:
		return strconv.AppendInt(b, *v, 10), true
	case *uint64:
		return strconv.AppendUint(b, *v, 10), true
	case *uint32:
		return strconv.AppendUint(b, uint64(*v), 10), true
	case *bool:
		return strconv.AppendBool(b, *v), true
	}
	return b, false
}

// appendText appends a string in which nothing has to be escaped.
func appendText(b []byte, s string) (_ []byte, ok bool) {
	for i := range len(s) {
		if !plain(s[i]) {
			return b, false
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"'), true
}

// plain reports whether a byte of a string stands for itself in JSON as encoding/json
// writes it, which escapes what HTML would take for its own.
func plain(c byte) bool {
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
}

// readKnown reads a reading of a common kind.
func readKnown(b []byte, v any) bool {
	switch v := v.(type) {
	case *string:
		s, rest, ok := cutText(b)
		if !ok || len(rest) > 0 {
			return false
		}
		*v = s
	case *int:
		n, rest, ok := cutNumber(b)
		if !ok || len(rest) > 0 || n > 1<<31-1 {
			return false
		}
		*v = int(n)
	case *int64:
		n, rest, ok := cutNumber(b)
		if !ok || len(rest) > 0 || n > 1<<63-1 {
			return false
		}
		*v = int64(n)
	case *uint64:
		n, rest, ok := cutNumber(b)
		if !ok || len(rest) > 0 {
			return false
		}
		*v = n
	case *uint32:
		n, rest, ok := cutNumber(b)
		if !ok || len(rest) > 0 || n > 1<<32-1 {
			return false
		}
		*v = uint32(n)
	default:
		return false
	}
	return true
}

// cutText cuts a string without escapes off.
func cutText(b []byte) (s string, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return "", b, false
	}
	for i := 1; i < len(b); i++ {
		if b[i] == '"' {
			return string(b[1:i]), b[i+1:], true
		}
		if b[i] == '\\' || b[i] < ' ' || b[i] >= 0x7f {
			break
		}
	}
	return "", b, false
}

// cutNumber cuts a whole number of at most 19 digits off; those of more are rare, and
// may not fit.
func cutNumber(b []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	for ; i < len(b) && i < 20 && b[i] >= '0' && b[i] <= '9'; i++ {
		n = n*10 + uint64(b[i]-'0')
	}
	if i == 0 || i == 20 || b[0] == '0' && i > 1 || i < len(b) && (b[i] == '.' || b[i] == 'e' || b[i] == 'E') {
		return 0, b, false
	}
	return n, b[i:], true
}

// The text around a counter's name and value.
var (
	counterName  = []byte(`{"name":`)
	counterValue = []byte(`,"value":`)
)

// plainCounters are Counters as encoding/json has them without methods.
type plainCounters []Counter

// MarshalJSON writes a list of {"name":…,"value":…}.
func (c Counters) MarshalJSON() ([]byte, error) {
	if c == nil {
		return []byte("null"), nil
	}
	b := append(make([]byte, 0, 2+48*len(c)), '[')
	for i := range c {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, counterName...)
		var ok bool
		if b, ok = appendText(b, c[i].Name); !ok {
			return json.Marshal(plainCounters(c))
		}
		b = append(b, counterValue...)
		if c[i].Value.state == known {
			b = strconv.AppendUint(b, c[i].Value.v, 10)
		} else {
			v, err := c[i].Value.MarshalJSON()
			if err != nil {
				return nil, err
			}
			b = append(b, v...)
		}
		b = append(b, '}')
	}
	return append(b, ']'), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Counters) UnmarshalJSON(b []byte) error {
	all, ok := readCounters(b)
	if !ok {
		return json.Unmarshal(b, (*plainCounters)(c))
	}
	*c = all
	return nil
}

// readCounters reads a list of known values without a space in it.
func readCounters(b []byte) (all Counters, ok bool) {
	if len(b) < 2 || b[0] != '[' {
		return nil, false
	}
	all = make(Counters, 0, bytes.Count(b, counterName))
	for b = b[1:]; ; b = b[1:] {
		var x Counter
		if b, ok = bytes.CutPrefix(b, counterName); !ok {
			return nil, false
		}
		if x.Name, b, ok = cutText(b); !ok {
			return nil, false
		}
		if b, ok = bytes.CutPrefix(b, counterValue); !ok {
			return nil, false
		}
		x.Value.state = known
		if x.Value.v, b, ok = cutNumber(b); !ok || len(b) < 2 || b[0] != '}' {
			return nil, false
		}
		all = append(all, x)
		if b = b[1:]; b[0] != ',' {
			break
		}
	}
	return all, string(b) == "]"
}
