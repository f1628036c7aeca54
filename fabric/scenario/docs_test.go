package scenario

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

const (
	docBegin = "<!-- The rest is made from the model by go test ./fabric/scenario -update. -->\n"
)

// docSections are the parts of a file in the order of the documentation.
func docSections() []struct {
	path  string
	value any
} {
	s := Default()
	fresh := func(v interface{ setDefaults() }) any { v.setDefaults(); return v }
	return []struct {
		path  string
		value any
	}{
		{"", s},
		{"topology", &s.Topology},
		{"topology.nodes[]", &Node{}},
		{"topology.links[]", fresh(&Link{})},
		{"topology.routes[]", &Route{}},
		{"packet", &s.Packet},
		{"switch", &s.Switch},
		{"switch.buffer", &s.Switch.Buffer},
		{"switch.buffer.headroom_by_rate[]", &RateHeadroom{}},
		{"switch.scheduler", &s.Switch.Scheduler},
		{"switch.ecn", &s.Switch.ECN},
		{"switch.ecn.by_rate[]", fresh(&RateMark{})},
		{"switch.ecn.by_priority[]", fresh(&PrioMark{})},
		{"switch.pfc", &s.Switch.PFC},
		{"switch.pfc.watchdog", &s.Switch.PFC.Watchdog},
		{"switch.ecmp", &s.Switch.ECMP},
		{"host", &s.Host},
		{"host.nic", &s.Host.NIC},
		{"host.rdma", &s.Host.RDMA},
		{"host.dcqcn", &s.Host.DCQCN},
		{"host.cnp", &s.Host.CNP},
		{"host.tcp", &s.Host.TCP},
		{"workload[]", fresh(&Workload{})},
		{"workload[].list[]", &FlowSpec{}},
		{"faults[]", fresh(&Fault{})},
		{"record", &s.Record},
		{"expect[]", &Expect{}},
	}
}

// kindOf says what a value is, and its limits.
func kindOf(f field) string {
	limits := ""
	if lo, hi := f.tag.Get("min"), f.tag.Get("max"); lo != "" && hi != "" {
		limits = ", " + lo + " to " + hi
	}
	switch f.val.Type() {
	case typeTime:
		return "time" + limits
	case typeRate:
		return "rate" + limits
	case typeBytes:
		return "bytes" + limits
	case typeLength:
		return "length" + limits
	case typeRatio:
		return "ratio" + limits
	case typePrios:
		return "priorities"
	case typeSelect:
		return "names"
	case typeQuantity:
		return "number, with or without unit"
	case typeHeadroom:
		return "auto, hpcc, conweave, or bytes"
	case typeSeed:
		return "per-switch, same, or a number"
	case typeIgnored:
		return "anything"
	}
	if enum := f.tag.Get("enum"); enum != "" {
		return strings.ReplaceAll(strings.TrimPrefix(enum, "|"), "|", ", ")
	}
	switch f.val.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Struct:
		return "map"
	case reflect.Slice:
		if f.val.Type().Elem() == typeOverlay {
			return "list of `match` and keys of " + f.tag.Get("overlay")
		}
		return "list"
	case reflect.Array:
		if f.val.Type().Elem() == typeRatio {
			return "map of priority to ratio" + limits
		}
		if f.val.Len() == 64 {
			return "map of 0..63 to 0..7"
		}
		if f.val.Type().Elem().Kind() == reflect.Uint8 {
			return "map of 0..7 to 0..7"
		}
		return "map of 0..7 to number" + limits
	}
	return "number" + limits
}

func defaultOf(f field) string {
	if f.val.Kind() == reflect.Array || isMap(f.val.Type()) || f.val.Type() == typeIgnored {
		return ""
	}
	text, ok := inline(f.val)
	if !ok || text == "" || text == `""` || text == "[]" && f.val.Type() != typePrios {
		return ""
	}
	return "`" + text + "`"
}

func makeDoc(t *testing.T) []byte {
	t.Helper()
	docs := comments(t)
	var b bytes.Buffer
	fmt.Fprintf(&b, "## Keys\n")
	for _, sec := range docSections() {
		v := reflect.ValueOf(sec.value).Elem()
		title := sec.path
		if title == "" {
			title = "The file"
		} else {
			title = "`" + title + "`"
		}
		fmt.Fprintf(&b, "\n### %s\n\n", title)
		if doc := docs[v.Type().Name()]; doc != "" && sec.path != "" {
			fmt.Fprintf(&b, "%s\n\n", describeField(doc, v.Type().Name()))
		}
		fmt.Fprintf(&b, "| key | value | default | meaning |\n|---|---|---|---|\n")
		for _, f := range fields(v) {
			if f.key == "*" {
				fmt.Fprintf(&b, "| any knob | as [dcqcn.md](dcqcn.md) lists them | the preset's | under mlxconfig's name or the paper's symbol |\n")
				continue
			}
			name := ""
			for i := range v.NumField() {
				if v.Type().Field(i).Tag.Get("yaml") == f.key {
					name = v.Type().Field(i).Name
				}
			}
			meaning := describeField(docs[v.Type().Name()+"."+name], name)
			if meaning == "" {
				meaning = describeField(docs[f.val.Type().Name()], f.val.Type().Name())
			}
			if meaning == "" {
				t.Errorf("%s: no comment", join(sec.path, f.key))
			}
			esc := strings.NewReplacer("|", `\|`, "<", "&lt;")
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.key, esc.Replace(kindOf(f)), esc.Replace(defaultOf(f)), esc.Replace(meaning))
		}
	}
	fmt.Fprintf(&b, "\n## Kinds of topology and the keys that each uses\n\n| kind | keys |\n|---|---|\n")
	for _, k := range strings.Split(fieldTag(Topology{}, "kind"), "|") {
		fmt.Fprintf(&b, "| %s | %s |\n", k, strings.Join(shapeKeys[Shape(k)], ", "))
	}
	fmt.Fprintf(&b, "\nAll use %s.\n", strings.Join(sharedShapeKeys, ", "))
	fmt.Fprintf(&b, "\n## Kinds of workload and the keys that each uses\n\n| kind | keys |\n|---|---|\n")
	for _, k := range strings.Split(fieldTag(Workload{}, "kind"), "|") {
		fmt.Fprintf(&b, "| %s | %s |\n", k, strings.Join(trafficKeys[Traffic(k)], ", "))
	}
	fmt.Fprintf(&b, "\nAll use %s.\n", strings.Join(sharedTrafficKeys, ", "))
	fmt.Fprintf(&b, "\n## Kinds of fault and the keys that each uses\n\n| kind | keys |\n|---|---|\n")
	for _, k := range strings.Split(fieldTag(Fault{}, "kind"), "|") {
		fmt.Fprintf(&b, "| %s | %s |\n", k, strings.Join(faultKeys[FaultKind(k)], ", "))
	}
	fmt.Fprintf(&b, "\nAll use at and kind, and all but a reroute where.\n")
	fmt.Fprintf(&b, "\n## Presets of buffers\n\n| preset | memory | cell | source |\n|---|---|---|---|\n")
	for _, a := range ASICs() {
		fmt.Fprintf(&b, "| %s | %.1f MB | %d B | %s |\n", a.Name, float64(a.Total)/1e6, int64(a.Cell), a.Source)
	}
	fmt.Fprintf(&b, "| %s | 16 MiB for each 50 Gb/s of `topology.rate` | 1 B | SIGCOMM'19 HPCC's simulator: reserved 4 KiB, alpha 1/8 that doubles with the port's rate, XON 3 KiB below XOFF, headroom 3 × rate × delay |\n", hpccPreset)
	return b.Bytes()
}

// fieldTag returns the choices of a key.
func fieldTag(v any, key string) string {
	t := reflect.TypeOf(v)
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("yaml") == key {
			return t.Field(i).Tag.Get("enum")
		}
	}
	return ""
}

// The reference in docs is that of the model.
func TestDocFile(t *testing.T) {
	want := makeDoc(t)
	file, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := bytes.Cut(file, []byte(docBegin))
	if !ok {
		t.Fatalf("%s has no line %s", docFile, docBegin)
	}
	if bytes.Equal(rest, append([]byte("\n"), want...)) {
		return
	}
	if !*update {
		t.Fatalf("%s is not the model's: run go test ./fabric/scenario -update", docFile)
	}
	if err := os.WriteFile(docFile, bytes.Join([][]byte{head, []byte(docBegin), []byte("\n"), want}, nil), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The examples in the documentation are scenarios.
func TestDocExamples(t *testing.T) {
	file, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, part := range strings.Split(string(file), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(part, "```")
		s, err := Parse("example", []byte(text))
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			continue
		}
		n++
		g, err := s.Graph(nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if err := s.Check(g); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	if n == 0 {
		t.Error("no example")
	}
}

// Each kind has its list of keys, and each of these is a key.
func TestKindsHaveKeys(t *testing.T) {
	check := func(v any, kinds []string, keys func(string) []string) {
		fs := fields(reflect.New(reflect.TypeOf(v)).Elem())
		for _, k := range kinds {
			if len(keys(k)) == 0 {
				t.Errorf("%s has no keys", k)
			}
			for _, key := range keys(k) {
				if lookup(fs, key) == nil {
					t.Errorf("%s: %s is no key", k, key)
				}
			}
		}
	}
	check(Topology{}, strings.Split(fieldTag(Topology{}, "kind"), "|"), func(k string) []string {
		return append(append([]string(nil), sharedShapeKeys...), shapeKeys[Shape(k)]...)
	})
	check(Workload{}, strings.Split(fieldTag(Workload{}, "kind"), "|"), func(k string) []string {
		return append(append([]string(nil), sharedTrafficKeys...), trafficKeys[Traffic(k)]...)
	})
	check(Fault{}, strings.Split(fieldTag(Fault{}, "kind"), "|"), func(k string) []string {
		own, ok := faultKeys[FaultKind(k)]
		if !ok {
			return nil
		}
		return append([]string{"at", "kind"}, own...)
	})
}
