package doctor_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// rails is a host of eight ports of which nothing is wrong, each with its interface.
func rails() *world {
	w := large(8, 1, false)
	w.noPeer = true
	w.app().PathMTU = snapshot.Value[int]{}
	for i := range w.after.Devices {
		w.after.Devices[i].QPs = snapshot.Value[[]snapshot.QP]{}
	}
	return w
}

func findingsOf(r *doctor.Report, rule string) []doctor.Finding {
	var out []doctor.Finding
	for _, f := range r.Findings {
		if f.Rule == rule {
			out = append(out, f)
		}
	}
	return out
}

// What is wrong with eight rails in the same way is one finding that names the ports
// and keeps the value of each.
func TestRailsAreOneFinding(t *testing.T) {
	w := rails()
	for i := range w.after.Devices {
		w.after.Devices[i].Ports[0].ActiveMTU = snapshot.Known([]int{1024, 1024, 2048, 1024, 1024, 1024, 1024, 1024}[i])
	}
	r := doctor.Examine(w.input(), builtin(t))
	all := findingsOf(r, "L11")
	if len(all) != 1 {
		t.Fatalf("%d findings L11, want 1: %+v", len(all), all)
	}
	f := all[0]
	want := []string{"mlx5_0/1", "mlx5_1/1", "mlx5_2/1", "mlx5_3/1", "mlx5_4/1", "mlx5_5/1", "mlx5_6/1", "mlx5_7/1"}
	if !slices.Equal(f.Places, want) || f.Where != strings.Join(want, ", ") {
		t.Errorf("places %v, where %q", f.Places, f.Where)
	}
	values := map[string]string{}
	for _, e := range f.Evidence {
		if e.What == "port.active_mtu" {
			values[e.Where] = e.Value
		}
	}
	if len(values) != 8 || values["mlx5_1/1"] != "1024" || values["mlx5_2/1"] != "2048" {
		t.Errorf("active MTUs %v", values)
	}
	// Scripts get the command of each; people one line.
	commands := 0
	for _, c := range f.Fix {
		if strings.HasPrefix(c, "ip link set eth") {
			commands++
		}
	}
	if commands != 8 {
		t.Errorf("%d commands: %q", commands, f.Fix)
	}
	var b strings.Builder
	if err := r.Text(&b, false); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"port.active_mtu = 1024 bytes at mlx5_0/1, mlx5_1/1, mlx5_3/1, mlx5_4/1, mlx5_5/1, mlx5_6/1, mlx5_7/1; 2048 bytes at mlx5_2/1   [mlx5_0/1, likewise for the others]\n",
		"netdev.mtu = 9000 bytes   [/sys/class/net/eth0/mtu, likewise for the others]\n",
		"fix: ip link set eth0 mtu 4200    # or 9000, on both ends and the switches; likewise eth1, eth2, eth3, eth4, eth5, eth6, eth7\n",
	} {
		if strings.Count(b.String(), line) != 1 {
			t.Errorf("not once in the report: %q\n%s", line, b.String())
		}
	}
	js, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(js), `{"what":"port.active_mtu","value":"2048","place":"mlx5_2/1","unit":"bytes","where":"mlx5_2/1"}`) {
		t.Errorf("JSON %s", js)
	}
}

// Ports that differ in gravity or in the cause are not one finding.
func TestDifferentFindingsStayApart(t *testing.T) {
	w := rails()
	for i := range w.after.Netdevs {
		on := [8]bool{}
		if i == 3 {
			on = [8]bool{5: true, 6: true}
		}
		w.after.Netdevs[i].DCB.PFC = snapshot.Known(snapshot.PFC{Cap: 8, Enabled: on})
	}
	all := findingsOf(doctor.Examine(w.input(), builtin(t)), "L01")
	if len(all) != 2 || len(all[0].Places)+len(all[1].Places) != 8 || len(all[0].Places) == 4 {
		t.Errorf("%d findings; the first at %q", len(all), all[0].Where)
	}
}

// Interfaces in one subnet are one finding, each with its list of the others.
func TestOneSubnetIsOneFinding(t *testing.T) {
	w := rails()
	for i := range w.after.Netdevs {
		w.after.Netdevs[i].Addresses = []snapshot.Address{{Prefix: fmt.Sprintf("10.0.0.%d/24", i+1)}}
		w.after.Sysctl[fmt.Sprintf("net.ipv4.conf.eth%d.arp_ignore", i)] = snapshot.Known("0")
	}
	all := findingsOf(doctor.Examine(w.input(), builtin(t)), "N04")
	if len(all) != 1 || len(all[0].Places) != 8 {
		t.Fatalf("%d findings N04", len(all))
	}
	for _, e := range all[0].Evidence {
		if e.What == "netdev.same_subnet" && (strings.Contains(e.Value, e.Where) || strings.Count(e.Value, "eth") != 7) {
			t.Errorf("%s is in one subnet with %s", e.Where, e.Value)
		}
	}
}

// The name of the thing in a cause would keep things apart that are one finding: names
// are in the evidence.
func TestCausesNameNothing(t *testing.T) {
	for _, r := range builtin(t) {
		for _, word := range []string{"${netdev.name}", "${device.name}", "${port.number}", "${netdev.same_subnet}", "${switch.port}"} {
			if strings.Contains(r.Cause+r.Why, word) {
				t.Errorf("%s: %s in its cause or why", r.ID, word)
			}
		}
	}
}

// What passed and what was skipped is joined too.
func TestPassedAndSkippedAreJoined(t *testing.T) {
	w := rails()
	for i := range w.after.Devices {
		w.after.Devices[i].Ports[0].CMRoCEMode = snapshot.Value[string]{}
	}
	r := doctor.Examine(w.input(), builtin(t))
	for _, list := range [][]doctor.Finding{r.Passed, r.Skipped} {
		seen := map[string]bool{}
		for _, f := range list {
			key := fmt.Sprint(f.Rule, f.Status, f.Missing, f.Places[0])
			if seen[key] {
				t.Errorf("twice: %s", key)
			}
			seen[key] = true
			if f.Rule == "L18" && (f.Status != doctor.Skip || len(f.Places) != 8) {
				t.Errorf("L18: %s at %v", f.Status, f.Places)
			}
		}
	}
}

// A finding of very many things names some of them in a line, and all in JSON.
func TestManyPlaces(t *testing.T) {
	w := large(40, 1, false)
	w.noPeer = true
	for i := range w.after.Devices {
		w.after.Devices[i].Ports[0].CMRoCEMode = snapshot.Known("IB/RoCE v1")
	}
	all := findingsOf(doctor.Examine(w.input(), builtin(t)), "L18")
	if len(all) != 1 || len(all[0].Places) != 40 || !strings.HasSuffix(all[0].Where, "mlx5_15/1 and 24 more") {
		t.Errorf("%d findings; the first at %q", len(all), all[0].Where)
	}
}
