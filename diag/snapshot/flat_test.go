package snapshot

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// samples are JSON texts of which every field of the model takes one.
var samples = []string{
	`7`, `"text"`, `"odd \"<ü"`, `true`, `["a"]`, `[7]`, `[]`, `[{}]`, `{"a":7}`, `{}`, `{"unreadable":"EINVAL"}`, `{"unreadable":"odd \u0001"}`, `null`,
	`-3`, `4000000000`, `18446744073709551615`, `123456789012345678`, `1234567890123456789`,
	`[{"name":"b","value":2},{"name":"a","value":18446744073709551615},{"name":"c","value":null},{"name":"d","value":{"unreadable":"x"}}]`,
	`[{"port":1,"type":"RC","state":"RTS","n":3},{"type":"UD","state":"RESET","n":1}]`,
	`[{"queue":0,"qps":1,"counters":[{"name":"link_recv_calls","value":5}]},{"queue":1,"qps":0}]`,
	`[{"rule":"drop 1%","met":5,"hits":2}]`, `{"qp":1,"cm_id":0,"cq":12}`, `[{"port":1,"state":4},{"port":2}]`,
}

// bothWays holds the short way to encoding/json's.
func bothWays(t *testing.T, d *Device) {
	t.Helper()
	want, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	got, err := AppendDevice([]byte("before"), d)
	if err != nil || string(got) != "before"+string(want) {
		t.Errorf("%s is written, %v; encoding/json writes %s", got, err, want)
	}
	readBothWays(t, string(want))
}

func readBothWays(t *testing.T, text string) (short bool) {
	t.Helper()
	got, ok := ReadDevice(text)
	if !ok {
		return false
	}
	var want Device
	if err := json.Unmarshal([]byte(text), &want); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s is read as %+v; encoding/json reads %+v, %v", text, got, want, err)
	}
	return true
}

// Every field of a device and of a port, with every sample that it takes, is written and
// read as encoding/json does it, also one that the short way does not know.
func TestDevicesAreWrittenAndReadAsEncodingJSONDoes(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[Device](), reflect.TypeFor[Port](), reflect.TypeFor[Queue](), reflect.TypeFor[QPCount](), reflect.TypeFor[Fault]()} {
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name == "" {
				t.Fatalf("%s of %s has no name in JSON", typ.Field(i).Name, typ)
			}
			taken := 0
			for _, s := range samples {
				text := fmt.Sprintf(`{%q:%s}`, name, s)
				switch typ.Name() {
				case "Port":
					text = `{"name":"vrb0","ports":[{"port":1},` + text + `]}`
				case "Queue":
					text = `{"queues":[` + text + `]}`
				case "QPCount":
					text = `{"qp_states":[` + text + `]}`
				case "Fault":
					text = `{"faults":[` + text + `]}`
				}
				var d Device
				readBothWays(t, text)
				if json.Unmarshal([]byte(text), &d) == nil {
					taken++
					bothWays(t, &d)
				}
			}
			if taken == 0 {
				t.Errorf("%s of %s takes no sample: add one", name, typ)
			}
		}
	}
}

// A device as ours are, without lists, takes the short way.
func TestDeviceWithoutListsTakesTheShortWay(t *testing.T) {
	count := func(names ...string) (c Counters) {
		for i, n := range names {
			c = append(c, Counter{n, Known(uint64(i) * 1e6)})
		}
		return c
	}
	d := Device{
		Name: "vrb_eth0", Kind: Verbena, Driver: Known("verbena"), NodeType: Known(1), Protocol: Known("roce"), NodeGUID: Known("0200:00ff:fe00:0001"),
		Ports: []Port{{
			Number: 1, State: Known(4), PhysState: Known(5), LinkLayer: Known("Ethernet"), Rate: Known("10 Gb/sec"), RateMbps: Known[int64](10000),
			ActiveMTU: Known(1024), MaxMTU: Known(4096), Netdev: Known("eth0"), NetIndex: Known(2), Counters: count("port_rcv_data"), HWCounters: count("a", "b", "c"),
		}},
		Resources: map[string]uint64{"qp": 2, "cq": 1, "ctx": 1}, QPStates: []QPCount{{Port: 1, Type: "RC", State: "RTS", N: 2}},
		Queues: []Queue{{Index: 0, QPs: 2, Counters: count("link_recv_calls")}}, PID: 17,
	}
	bothWays(t, &d)
	b, err := AppendDevice(nil, &d)
	if err != nil || !readBothWays(t, string(b)) {
		t.Errorf("not read the short way: %s, %v", b, err)
	}
	for n := range len(b) { // a cut text is none
		if _, ok := ReadDevice(string(b[:n])); ok {
			t.Errorf("%s is read", b[:n])
		}
	}
}

func FuzzReadDevice(f *testing.F) {
	f.Add(`{"name":"a","ports":[{"port":1,"counters":[{"name":"b","value":2}]}],"resources":{"qp":1},"queues":[{"queue":0,"qps":0}]}`)
	f.Add(`{"name":"a","kind":"verbena","ports":null,"qp_states":[{"type":"RC","state":"RTS","n":1}],"faults":[{"rule":"","met":0,"hits":0}],"pid":1}`)
	f.Fuzz(func(t *testing.T, text string) { readBothWays(t, text) })
}
