package anonymise

import (
	"encoding/hex"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// words are what is replaced beside addresses.
type words struct {
	*mapper
	hosts map[string]string // names of hosts and what they become
	guids map[string]bool   // GUIDs of this host as 16 digits
	real  map[string]string // names of interfaces and devices by what they became
}

var (
	reNamed = regexp.MustCompile(`^(enx|rocex|ibx|iwx|opax)([0-9a-f]{12}|[0-9a-f]{16})$`)
	reHome  = regexp.MustCompile(`(/home/|/users/)[^/\s"':,;]+`)
	reNCCL  = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*):\d+:\d+ \[`)
	reUCX   = regexp.MustCompile(`^\[\d+\.\d+\] \[([A-Za-z0-9][A-Za-z0-9._-]*):\d+`)
)

// learn takes the names of hosts out of lines of a log.
func (w *words) learn(lines []string) {
	for _, l := range lines {
		for _, re := range []*regexp.Regexp{reNCCL, reUCX} {
			if m := re.FindStringSubmatch(l); m != nil && len(w.hosts) < 10_000 {
				w.addHost(m[1])
			}
		}
	}
}

// addHost also takes the first part of a name with a domain.
func (w *words) addHost(name string) {
	short, _, dotted := strings.Cut(name, ".")
	for _, n := range []string{name, short} {
		if n == "" || n == "localhost" || n == "localhost.localdomain" {
			continue
		}
		w.hosts[n] = w.host(short)
	}
	_ = dotted
}

func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

func addrByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' || c == ':' || c == '.'
}

// text replaces in plain text. hosts says whether names of hosts are looked for.
func (w *words) text(s string, hosts bool) string {
	if strings.Contains(s, "/home/") || strings.Contains(s, "/users/") {
		s = reHome.ReplaceAllString(s, "${1}user")
	}
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		c := s[i]
		if !wordByte(c) && c != ':' {
			out.WriteByte(c)
			i++
			continue
		}
		// A word with the signs that hold addresses and names together.
		end := i
		for end < len(s) && (wordByte(s[end]) || s[end] == ':' || s[end] == '.' || s[end] == '-') {
			end++
		}
		n := w.word(&out, s[i:end], s[end:], hosts)
		i = end + n
	}
	return out.String()
}

// word replaces one word; rest is what follows it, and the result how many bytes of
// that were taken.
func (w *words) word(out *strings.Builder, s, rest string, hosts bool) int {
	if hosts {
		name := strings.TrimRight(s, ".:-")
		if to, ok := w.hosts[name]; ok {
			out.WriteString(to + s[len(name):])
			return 0
		}
		// host:pid:tid
		if head, tail, ok := strings.Cut(s, ":"); ok {
			if to, known := w.hosts[head]; known {
				out.WriteString(to + ":")
				return w.word(out, tail, rest, hosts)
			}
		}
	}
	if n := w.named(s); n != s {
		out.WriteString(n)
		return 0
	}
	if len(s) >= 16 {
		d := strings.ToLower(strings.TrimPrefix(s, "0x"))
		if w.guids[d] {
			b, _ := hex.DecodeString(d)
			out.WriteString(s[:len(s)-16] + hex.EncodeToString(w.guid(b)))
			return 0
		}
	}
	// Ranges and lists: a-b.
	for k, part := range strings.Split(s, "-") {
		if k > 0 {
			out.WriteByte('-')
		}
		taken := w.address(out, part, rest)
		if taken > 0 {
			return taken
		}
	}
	return 0
}

// named replaces the names that the system makes of addresses: enx0011223344ff.
func (w *words) named(s string) string {
	m := reNamed.FindStringSubmatch(s)
	if m == nil {
		return s
	}
	b, err := hex.DecodeString(m[2])
	if err != nil {
		return s
	}
	if len(b) == 6 {
		b = w.mac(b)
	} else {
		b = w.guid(b)
	}
	to := m[1] + hex.EncodeToString(b)
	w.real[to] = s
	return to
}

// address replaces an address, with what follows it if that is the length of a prefix.
func (w *words) address(out *strings.Builder, s, rest string) (taken int) {
	core := strings.TrimRight(s, ".")
	if !strings.HasSuffix(core, "::") {
		core = strings.TrimRight(core, ":")
	}
	tail := s[len(core):]
	for i := range len(core) {
		if !addrByte(core[i]) {
			out.WriteString(s)
			return 0
		}
	}
	if to, ok := w.hexGroups(core); ok {
		out.WriteString(to + tail)
		return 0
	}
	a, err := netip.ParseAddr(core)
	if err != nil {
		if i := strings.LastIndexByte(core, ':'); i > 0 { // address:port
			if b, err := netip.ParseAddr(core[:i]); err == nil && b.Is4() {
				out.WriteString(w.addr(b).String() + core[i:] + tail)
				return 0
			}
		}
		out.WriteString(s)
		return 0
	}
	b := w.addr(a)
	if tail == "" && strings.HasPrefix(rest, "/") {
		n := 1
		for n < len(rest) && n < 4 && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		if bits, err := strconv.Atoi(rest[1:n]); err == nil {
			if p, err := a.Prefix(bits); err == nil && p.Addr() == a {
				if q, err := b.Prefix(bits); err == nil {
					b = q.Addr()
				}
			}
			out.WriteString(style(b, core) + rest[:n])
			return n
		}
	}
	out.WriteString(style(b, core) + tail)
	return 0
}

// style writes an address as the original was: all digits of a GID, or short.
func style(a netip.Addr, like string) string {
	if len(like) == 39 {
		return a.StringExpanded()
	}
	return a.String()
}

// hexGroups replaces MAC addresses (6 groups of two digits), GUIDs (4 of four) and the
// hardware addresses of IP over InfiniBand (20 of two: a queue pair and a GID).
func (w *words) hexGroups(s string) (string, bool) {
	groups := strings.Split(s, ":")
	size := len(groups[0])
	switch [2]int{len(groups), size} {
	case [2]int{6, 2}, [2]int{4, 4}, [2]int{20, 2}:
	default:
		return "", false
	}
	for _, g := range groups {
		if len(g) != size {
			return "", false
		}
	}
	b, err := hex.DecodeString(strings.Join(groups, ""))
	if err != nil {
		return "", false
	}
	switch len(b) {
	case 6:
		b = w.mac(b)
	case 8:
		b = w.guid(b)
	case 20:
		b = append(b[:12:12], w.guid(b[12:])...)
	}
	d := hex.EncodeToString(b)
	for i := range groups {
		groups[i] = d[i*size : (i+1)*size]
	}
	return strings.Join(groups, ":"), true
}

// json replaces in the strings of a JSON text. Names of hosts are no keys, and
// versions of firmware no addresses.
func (w *words) json(b []byte) []byte {
	out := make([]byte, 0, len(b))
	key := ""
	for i := 0; i < len(b); {
		if b[i] != '"' {
			out = append(out, b[i])
			i++
			continue
		}
		end := i + 1
		for end < len(b) && b[end] != '"' {
			if b[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(b) {
			return append(out, b[i:]...)
		}
		s := string(b[i+1 : end])
		i = end + 1
		out = append(out, '"')
		switch {
		case i < len(b) && b[i] == ':':
			key = s
			out = append(out, w.text(s, false)...)
		case key == "fw_ver":
			out = append(out, s...)
		default:
			out = append(out, w.text(s, true)...)
		}
		out = append(out, '"')
	}
	return out
}
