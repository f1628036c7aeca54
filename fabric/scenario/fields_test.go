package scenario

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/transport/dcqcn"
)

// sameScenario compares what files say.
var sameScenario = cmp.Options{
	cmpopts.IgnoreUnexported(Scenario{}, Quantity{}),
	cmp.Comparer(func(a, b Overlay) bool {
		return cmp.Equal(a.Match, b.Match) && a.set.flow() == b.set.flow()
	}),
	cmpopts.EquateEmpty(),
}

// The effective file reads back as the same scenario, and so do the changes.
func TestRoundTripExamples(t *testing.T) {
	for name, data := range examples(t) {
		s, err := Parse(name, data)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for what, text := range map[string][]byte{"YAML": s.YAML(), "Changes": s.Changes()} {
			again, err := Parse(name+" "+what, text)
			if err != nil {
				t.Errorf("%v\n%s", err, text)
				continue
			}
			if diff := cmp.Diff(s, again, sameScenario); diff != "" {
				t.Errorf("%s: %s:\n%s\n%s", name, what, diff, text)
			}
		}
		if string(s.YAML()) != string(mustParse(t, s.YAML()).YAML()) {
			t.Errorf("%s: the effective file of the effective file is another", name)
		}
	}
}

func mustParse(t *testing.T, data []byte) *Scenario {
	t.Helper()
	s, err := Parse("test", data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return s
}

// draw fills a value with what its tags allow.
func draw(t *rapid.T, v reflect.Value, tag reflect.StructTag, label string) {
	limits := func(k *quantityKind) (lo, hi int64) {
		lo, _ = k.parse(tag.Get("min"))
		hi, _ = k.parse(tag.Get("max"))
		return lo, hi
	}
	switch v.Type() {
	case typeTime:
		v.SetInt(drawInt(t, label, limits, timeKind))
		return
	case typeRate:
		v.SetInt(drawInt(t, label, limits, rateKind))
		return
	case typeBytes:
		v.SetInt(drawInt(t, label, limits, byteKind))
		return
	case typeLength:
		v.SetInt(drawInt(t, label, limits, lengthKind))
		return
	case typeRatio:
		lo, _ := parseRatio(tag.Get("min"))
		hi, _ := parseRatio(tag.Get("max"))
		v.SetUint(rapid.Uint64Range(uint64(lo), uint64(hi)).Draw(t, label))
		return
	case typePrios:
		v.SetUint(uint64(rapid.Uint8().Draw(t, label)))
		return
	case typeSelect:
		v.Set(reflect.ValueOf(Select(rapid.SliceOfN(rapid.StringN(0, 8, 20), 1, 3).Draw(t, label))))
		return
	case typeHeadroom:
		v.Set(reflect.ValueOf(rapid.OneOf(
			rapid.SampledFrom([]Headroom{{Rule: HeadroomAuto}, {Rule: HeadroomHPCC}, {Rule: HeadroomConweave}}),
			rapid.Map(rapid.Int64Range(0, 1e9), func(n int64) Headroom { return Headroom{HeadroomBytes, Bytes(n)} }),
		).Draw(t, label)))
		return
	case typeSeed:
		v.Set(reflect.ValueOf(rapid.OneOf(
			rapid.Just(ECMPSeed{PerSwitch: true}),
			rapid.Map(rapid.Uint32(), func(n uint32) ECMPSeed { return ECMPSeed{Value: n} }),
		).Draw(t, label)))
		return
	case typeQuantity:
		q, err := parseQuantity(rapid.SampledFrom([]string{"12", "5%", "85Gbps", "200us", "8KB", "-1", "0.125"}).Draw(t, label))
		if err != nil {
			t.Fatal(err)
		}
		v.Set(reflect.ValueOf(q))
		return
	case typeIgnored, typeOverlay:
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if d, ok := v.Addr().Interface().(*DCQCN); ok {
			d.Preset = rapid.SampledFrom([]string{"paper", "mlx5", "hpcc", "off"}).Draw(t, label)
			for _, k := range dcqcn.Knobs() {
				if rapid.Bool().Draw(t, k.Name) {
					p, _ := dcqcn.Preset("mlx5")
					d.Knobs = append(d.Knobs, Knob{k.Name, k.Get(&p)})
				}
			}
			return
		}
		for _, f := range fields(v) {
			if _, ok := v.Addr().Interface().(presetter); ok && f.key == "preset" {
				f.val.SetString(rapid.SampledFrom([]string{"", "tomahawk", "spectrum2"}).Draw(t, label))
				continue
			}
			draw(t, f.val, f.tag, join(label, f.key))
		}
	case reflect.Array:
		for i := range v.Len() {
			if v.Type().Elem().Kind() == reflect.Uint8 {
				tag = `min:"0" max:"7"`
			}
			draw(t, v.Index(i), tag, index(label, i))
		}
	case reflect.Slice:
		if v.Type().Elem() == typeOverlay {
			return
		}
		n := rapid.IntRange(0, 2).Draw(t, label)
		s := reflect.MakeSlice(v.Type(), n, n)
		for i := range n {
			draw(t, s.Index(i), "", index(label, i))
		}
		v.Set(s)
	case reflect.String:
		if enum := tag.Get("enum"); enum != "" {
			v.SetString(rapid.SampledFrom(strings.Split(enum, "|")).Draw(t, label))
			return
		}
		v.SetString(rapid.StringN(0, 20, 60).Draw(t, label))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, label))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, label))
	default:
		lo, _ := parseInt(tag.Get("min"))
		hi, _ := parseInt(tag.Get("max"))
		n := rapid.Int64Range(lo, hi).Draw(t, label)
		if v.CanInt() {
			v.SetInt(n)
		} else {
			v.SetUint(uint64(n))
		}
	}
}

func drawInt(t *rapid.T, label string, limits func(*quantityKind) (int64, int64), k *quantityKind) int64 {
	lo, hi := limits(k)
	return rapid.OneOf(rapid.Int64Range(lo, hi), rapid.Int64Range(lo, max(lo, min(hi, 100_000)))).Draw(t, label)
}

// Whatever the model can hold, its file says exactly that. Cross checks are left
// out: a model drawn at random is seldom possible as a whole.
func TestRoundTripAnyModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Default()
		draw(t, reflect.ValueOf(s).Elem(), "", "")
		for i := range s.Workload {
			s.Workload[i].Chunks = max(1, s.Workload[i].Chunks)
		}
		s.Topology.UplinkCable, s.Topology.CoreCable = 0, 0 // of a delay and a length the file has one
		if s.Topology.Cable > 0 {
			s.Topology.Delay = Default().Topology.Delay
		}
		text := s.YAML()
		root, err := readTree("x", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		got := Default()
		if err := newDecoder().structure(root, reflect.ValueOf(got).Elem(), ""); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		// What the kind of topology does not use is not written.
		keep := usedKeys(reflect.ValueOf(&s.Topology).Elem())
		for _, f := range fields(reflect.ValueOf(&s.Topology).Elem()) {
			if !keep[f.key] {
				f.val.Set(lookup(fields(reflect.ValueOf(&got.Topology).Elem()), f.key).val)
			}
		}
		if diff := cmp.Diff(s, got, sameScenario); diff != "" {
			t.Fatalf("%s\n%s", diff, text)
		}
	})
}
