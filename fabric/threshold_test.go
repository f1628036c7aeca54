package fabric

import (
	"fmt"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/explain"
)

// The largest Kmin that is proposed lets ECN act before PFC: with it, and as many
// queues full at once as one ingress can fill, a packet is marked before anybody is
// stopped. Twice that, or where XOFF is so small that no Kmin is proposed, PFC comes
// first. The presets are those of switches on the market, speeds those of their ports.
func TestTheLargestKMinComesBeforePFC(t *testing.T) {
	small := 0
	for k, rate := range []int{10, 100, 400} {
		delay := []string{"5us", "1us", "50ns"}[k]
		for _, buffer := range []string{
			"total: 12MB, xoff: 20KB", "total: 12MB, xoff: 100KB", "total: 12MB, xoff: 3KB", "preset: tomahawk, alpha: 1/8", "preset: tomahawk3, alpha: 1/8",
			"preset: tomahawk3, alpha: 1", "preset: spectrum, alpha: 1/64", "total: 32MB, alpha: 8", "preset: hpcc",
		} {
			for _, fans := range []int{1, 3} { // egresses that the one ingress feeds
				name := fmt.Sprintf("%d Gb/s, %s, %d egresses", rate, buffer, fans)
				stopped, most, ok := firstStop(t, rate, buffer, fans, delay, 1<<30)
				if !ok {
					t.Errorf("%s: nothing is said of XOFF, and there was a stop", name)
					continue
				}
				if stopped > 0 {
					t.Errorf("%s: marked with a Kmin of 1 GiB", name)
				}
				if most == 0 {
					small++
					most = 1048
				} else if got, _, _ := firstStop(t, rate, buffer, fans, delay, most); got == 0 {
					t.Errorf("%s: Kmin %d, and nothing was marked before the first stop", name, most)
				}
				// Some frames more, since what is left for those on their way is not all used.
				if got, _, _ := firstStop(t, rate, buffer, fans, delay, 2*most+8*1048); got > 0 {
					t.Errorf("%s: Kmin may be %d, but with twice that %d packets were marked in time", name, most, got)
				}
			}
		}
	}
	if small == 0 {
		t.Error("there is no XOFF for which no Kmin is small enough")
	}
}

// firstStop runs one host that sends to others behind slower links until a port is
// stopped, and returns what was marked until then, and the Kmin that is proposed.
func firstStop(t *testing.T, rate int, buffer string, fans int, delay string, kmin int64) (marked uint64, most int64, ok bool) {
	t.Helper()
	var nodes, links, flows strings.Builder
	for i := range fans {
		fmt.Fprintf(&nodes, ", {name: d%d, kind: host}", i)
		fmt.Fprintf(&links, ", {a: s, b: d%d, rate: %dGbps}", i, rate)
		fmt.Fprintf(&flows, "  - {name: f%d, kind: long, src: h, dst: d%d, bytes: 100MB}\n", i, i)
	}
	text := fmt.Sprintf(`
topology:
  kind: explicit
  delay: %s
  nodes: [{name: s, kind: switch}, {name: h, kind: host}%s]
  links: [{a: h, b: s, rate: %dGbps}%s]
packet: {mtu: 1024, payload: 1000, header: 48, gap: false}
switch:
  buffer: {%s}
  ecn: {kmin: %dB, kmax: %dB, pmax: 100%%}
host: {dcqcn: {preset: off}}
duration: 100ms
workload:
%s`, delay, nodes.String(), 4*fans*rate, links.String(), buffer, kmin, kmin, flows.String())
	r := loaded(t, text)
	for len(r.pauses) == 0 {
		if over, err := r.Advance(1); over || err != nil {
			t.Fatalf("nobody was stopped (%v): %s", err, text)
		}
	}
	res := r.Result()
	sw := r.Graph.Node("s")
	for p := range res.Nodes[sw].Ports {
		marked += res.Nodes[sw].Ports[p].Prio[3].Marked
	}
	most, ok = explain.MostKMin(res, sw, 1, 3)
	return marked, most, ok
}
