package fabric

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/explain"
	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
)

// The seeds that a plain test runs; a soak has a thousand times as many. Those
// beside were wrong once.
const randomCases = 16

var wrongOnce = []int{29, 243, 321, 408, 432, 544, 584}

// randomEvents is the most that a random scenario may take: each moves a few
// megabytes over a few hops.
const randomEvents = 3_000_000

// Whatever a scenario says, a run ends, twice alike, keeps every rule, and says
// of each flow how it stands.
func TestRandomScenarios(t *testing.T) {
	seeds := wrongOnce
	for seed := range randomCases {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		text := anyScenario.Example(seed)
		if err := tryScenario(text); err != nil {
			t.Errorf("seed %d: %v\n%s", seed, err, text)
		}
	}
}

// tryScenario runs a scenario twice and says which promise does not hold.
func tryScenario(text string) (err error) {
	sc, err := scenario.Parse("random.yaml", []byte(text))
	if err != nil {
		return refusal(err)
	}
	var digest uint64
	for i := range 2 {
		r, warnings, err := Load(sc, nil)
		if err != nil {
			return refusal(err)
		}
		for over := false; !over; {
			if over, err = r.Advance(1 << 16); err != nil {
				return fmt.Errorf("the run failed: %w", err)
			}
			if r.S.Events() > randomEvents {
				return fmt.Errorf("%d events at %v and no end; %s", r.S.Events(), r.S.Now(), standing(r.Result()))
			}
		}
		res := r.Result()
		if err := promises(text, sc, res, warnings); err != nil {
			return err
		}
		if i == 0 {
			digest = res.Digest
			if err := tell(res); err != nil {
				return err
			}
		} else if res.Digest != digest {
			return fmt.Errorf("digest %#x, then %#x", digest, res.Digest)
		}
	}
	return nil
}

// refusal lets one line with a place pass.
func refusal(err error) error {
	if s := err.Error(); !strings.HasPrefix(s, "random.yaml:") || strings.Contains(s, "\n") {
		return fmt.Errorf("refused without a place, or in several lines: %w", err)
	}
	return nil
}

// promises checks what holds of every run.
func promises(text string, sc *scenario.Scenario, res *result.Run, warnings []scenario.Warning) error {
	disturbed := len(sc.Faults) > 0 || sc.Topology.ErrorRate > 0
	disturbed = disturbed || len(warnings) > 0
	for _, b := range res.Breaches {
		if b.Rule == "no drop in a lossless class" && disturbed {
			continue
		}
		return fmt.Errorf("breach at %v: %s: %s", b.At, b.Rule, b.Detail)
	}
	for i := range res.Flows {
		f := &res.Flows[i]
		switch {
		case f.State == result.Failed && f.Status == "":
			return fmt.Errorf("flow %d has failed and does not say why", i)
		case f.State == result.Running && strings.HasPrefix(res.Why, "nothing left") && f.Service != "UC" && f.Service != "UD" && sc.Host.RDMA.TimeoutExp != 0 && f.Silent != "link down":
			return fmt.Errorf("flow %d hangs for ever: %s", i, standing(res))
		case f.State == result.Finished && f.Delivered > f.Bytes && f.Bytes > 0:
			return fmt.Errorf("flow %d of %d bytes has %d", i, f.Bytes, f.Delivered)
		case f.State == result.Finished && f.Service != "UC" && f.Service != "UD" && f.Delivered < f.Bytes:
			return fmt.Errorf("flow %d (%s) is finished with %d of %d bytes", i, f.Service, f.Delivered, f.Bytes)
		case f.State == result.Finished && f.Finish < f.Start:
			return fmt.Errorf("flow %d ended at %v before it started at %v", i, f.Finish, f.Start)
		case f.State == result.Finished && f.Service == "RC" && f.Base > 0 && f.FCT() < f.Base && f.QPs == 1 && !strings.Contains(text, "message"):
			return fmt.Errorf("flow %d took %v, faster than the idle network's %v", i, f.FCT(), f.Base)
		}
	}
	return nil
}

// tell makes every output there is.
func tell(res *result.Run) error {
	story := explain.Explain(res)
	if err := story.Text(io.Discard, 80); err != nil {
		return err
	}
	for _, f := range report.Files(res, report.Page{Command: "test"}) {
		if err := f.Write(io.Discard); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

// standing says how the flows of a run stand.
func standing(res *result.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q at %v;", res.Why, res.End)
	for i := range res.Flows {
		if f := &res.Flows[i]; f.State == result.Running {
			fmt.Fprintf(&b, " flow %d (%s %s) %d of %d bytes, %s;", i, f.Service, f.Op, f.Delivered, f.Bytes, f.Silent)
		}
		if b.Len() > 800 {
			break
		}
	}
	return b.String()
}

// anyScenario draws scenario files. They are small, but every key that changes
// what happens to a packet is drawn from its edges too.
var anyScenario = rapid.Custom(func(t *rapid.T) string {
	d := drawer{t: t}
	d.file()
	return d.b.String()
})

type drawer struct {
	t *rapid.T
	b strings.Builder
}

func (d *drawer) line(format string, a ...any) { fmt.Fprintf(&d.b, format+"\n", a...) }

// of draws one of some values.
func (d *drawer) of(label string, values ...string) string {
	return rapid.SampledFrom(values).Draw(d.t, label)
}

func (d *drawer) chance(label string, percent int) bool {
	return rapid.IntRange(1, 100).Draw(d.t, label) > 100-percent
}

func (d *drawer) num(label string, low, high int) int {
	return rapid.IntRange(low, high).Draw(d.t, label)
}

// keys writes a map of the keys that are drawn, each with some chance.
func (d *drawer) keys(indent string, percent int, rows ...[]string) {
	for _, row := range rows {
		if d.chance(row[0]+"?", percent) {
			d.line("%s%s: %s", indent, row[0], d.of(row[0], row[1:]...))
		}
	}
}

func (d *drawer) file() {
	d.line("seed: %d", d.num("seed", 1, 1000))
	d.line("duration: %s", d.of("duration", "1ns", "10us", "300us", "2ms", "5ms", "5ms", "20ms"))
	if d.chance("until", 10) {
		d.line("until: duration")
	}
	hosts := d.topology()
	d.packet()
	d.line("switch:")
	d.line("  mtu: 9216")
	d.switches("  ")
	d.line("host:")
	d.line("  tagged: %v", d.chance("tagged", 20))
	d.host("  ")
	d.workload(hosts)
	d.faults(hosts)
	d.line("record: {series: %s}", d.of("series", "none", "all"))
}

// topology returns the number of hosts.
func (d *drawer) topology() int {
	rate := d.of("rate", "1Gbps", "10Gbps", "25Gbps", "100Gbps", "100Gbps", "400Gbps", "800Gbps")
	delay := d.of("delay", "0", "1ns", "100ns", "1us", "1us", "5us", "50us")
	d.line("topology:")
	d.line("  rate: %s\n  delay: %s", rate, delay)
	d.keys("  ", 15, []string{"error_rate", "0.0001", "1%", "50%", "100%"}, []string{"subnets", "one", "per-leaf"})
	n := 0
	switch kind := d.of("topology", "star", "star", "dumbbell", "parking-lot", "spine-leaf", "spine-leaf", "fat-tree", "three-tier", "rail", "ring", "bounce"); kind {
	case "star":
		n = d.num("hosts", 2, 9)
		d.line("  kind: star\n  hosts: %d\n  nics: %d", n, d.num("nics", 1, 2))
	case "dumbbell":
		a, b := d.num("left", 1, 4), d.num("right", 1, 4)
		d.line("  kind: dumbbell\n  left: %d\n  right: %d", a, b)
		n = a + b
	case "parking-lot", "ring":
		s, h := d.num("switches", 3, 4), d.num("hosts", 1, 2)
		d.line("  kind: %s\n  switches: %d\n  hosts_per_switch: %d", kind, s, h)
		if kind == "ring" {
			d.line("  one_way: %v", d.chance("one way", 50))
		}
		n = s * h
	case "spine-leaf":
		l, s, h := d.num("leaves", 1, 3), d.num("spines", 1, 3), d.num("hosts", 1, 4)
		d.line("  kind: spine-leaf\n  leaves: %d\n  spines: %d\n  hosts_per_leaf: %d\n  nics: %d", l, s, h, d.num("nics", 1, 2))
		n = l * h
	case "fat-tree":
		d.line("  kind: fat-tree\n  k: %d", 4)
		n = 16
	case "three-tier":
		d.line("  kind: three-tier\n  hosts_per_leaf: 2")
		n = 8
	case "rail":
		d.line("  kind: rail\n  nics: 2\n  spines: 2\n  hosts_per_unit: 3\n  units: 2")
		n = 6
	case "bounce":
		d.line("  kind: bounce\n  hosts_per_leaf: 2")
		n = 4
	}
	if d.chance("uplink", 30) {
		d.line("  uplink_rate: %s", d.of("uplink_rate", "1Gbps", "10Gbps", "40Gbps", "400Gbps"))
	}
	return max(n, 2)
}

func (d *drawer) packet() {
	d.line("packet:")
	mtu := d.num("mtu", 0, 4)
	d.line("  mtu: %d", 256<<mtu)
	if d.chance("payload", 30) {
		d.line("  payload: %d", d.num("payload", 1+200<<mtu>>1, 256<<mtu))
	}
	d.keys("  ", 25, []string{"header", "16", "48", "1000"}, []string{"control", "1", "64", "84"}, []string{"gap", "true"})
}

func (d *drawer) switches(in string) {
	d.keys(in, 25,
		[]string{"mode", "cut-through", "store-and-forward"}, []string{"latency", "1ns", "600ns", "20us"},
		[]string{"trust", "pcp", "dscp"}, []string{"dscp_map", "{26: 0}", "{26: 4}", "{26: 6, 48: 6}"},
		[]string{"prio_group_map", "{4: 3}", "{0: 7, 1: 7}", "{0: 1, 1: 1, 2: 1}"})
	d.line("%sbuffer:", in)
	d.keys(in+"  ", 25,
		[]string{"total", "0", "200KB", "1MB", "16MB"}, []string{"cell", "1B", "64B", "208B", "4KB"},
		[]string{"reserved", "0", "1B", "4KB", "50KB"}, []string{"alpha", "1/1024", "1/8", "1", "64"}, []string{"lossy_alpha", "1/1024", "1/4", "64"},
		[]string{"egress_alpha", "1/16", "1"}, []string{"headroom", "auto", "0", "1KB", "40KB", "hpcc", "conweave"},
		[]string{"headroom_pool", "1KB", "100KB"}, []string{"xoff", "3KB", "20KB"}, []string{"xon_offset", "0", "1KB", "3KB"}, []string{"xon", "0", "2KB"})
	d.line("%sscheduler:", in)
	d.keys(in+"  ", 25, []string{"strict", "none", "[3]", "[6, 7]", "all"}, []string{"weights", "{3: 1, 0: 1000}", "{3: 10, 6: 3}"}, []string{"quantum", "1B", "1KB", "1MB"})
	d.line("%secn:", in)
	d.keys(in+"  ", 25,
		[]string{"kmin", "0", "1KB", "5KB"}, []string{"kmax", "5KB", "200KB", "100GB"}, []string{"pmax", "0", "1%", "1"},
		[]string{"at", "enqueue", "dequeue"}, []string{"drop_not_ect", "true", "false"}, []string{"priorities", "all", "none", "[0, 3]"})
	d.line("%spfc:", in)
	d.keys(in+"  ", 25, []string{"priorities", "all", "none", "[3, 4]", "[0]"}, []string{"quanta", "1", "2", "100", "65535"},
		[]string{"response_delay", "1ns", "1us", "50us"}, []string{"global_pause", "true"},
		[]string{
			"watchdog", "{enable: true, detect: 1us, restore: 1us, action: forward}", "{enable: true, detect: 100us, restore: 50us, action: drop}",
			"{enable: true, detect: 50us, restore: 1us, action: alert}", "{enable: true, detect: 20us, restore: 10us, action: forward}",
		})
	d.line("%secmp:", in)
	d.keys(in+"  ", 25, []string{"seed", "per-switch", "same", "7"}, []string{"fields", "ip"})
}

func (d *drawer) host(in string) {
	d.line("%snic:", in)
	d.keys(in+"  ", 15,
		[]string{"packet_rate", "10000", "1000000", "200000000", "999999999999"}, []string{"qp_rate", "1Gbps", "5Gbps", "5Tbps", "10Mbps"},
		[]string{"rx_queues", "1", "4", "1024"}, []string{"rss", "udp", "ip", "off"}, []string{"rx_rate", "1Gbps", "20Gbps"},
		[]string{"rx_packet_rate", "100000", "100000000"}, []string{"pcie_rate", "1Gbps", "40Gbps"}, []string{"rx_buffer", "5KB", "50KB", "1MB"},
		[]string{"xoff", "1B", "3KB"}, []string{"xon", "1B", "1KB"}, []string{"pfc", "all", "none", "[3]"}, []string{"quanta", "1", "100"}, []string{"response_delay", "1ns", "20us"})
	if d.chance("v1", 10) {
		d.line("%sroce: v1", in)
	}
	d.line("%srdma:", in)
	d.line("%s  timeout_exp: %s", in, d.of("timeout_exp", "0", "1", "5", "8", "10", "14"))
	d.keys(in+"  ", 20,
		[]string{"retry_cnt", "0", "1", "7"}, []string{"rnr_retry", "0", "7"}, []string{"ack_every", "1", "2", "64", "1024"}, []string{"qps", "1", "3", "16"},
		[]string{"message", "64B", "100B", "10KB"}, []string{"ecn", "false"}, []string{"priority", "0", "3", "6", "7"}, []string{"dscp", "0", "26", "63"})
	d.line("%sdcqcn: {preset: %s}", in, d.of("preset", "mlx5", "paper", "hpcc", "off"))
	d.line("%scnp:", in)
	d.keys(in+"  ", 20, []string{"priority", "0", "3", "7"}, []string{"dscp", "0", "26", "63"})
	d.line("%stcp:", in)
	d.keys(in+"  ", 20, []string{"kind", "reno", "dctcp"}, []string{"priority", "0", "3"}, []string{"mss", "64", "1460", "9000"}, []string{"min_rto", "1us", "100us", "10ms"}, []string{"init_window", "1", "1000"}, []string{"max_window", "1B", "10KB"})
}

func (d *drawer) workload(hosts int) {
	d.line("workload:")
	name := func() string { return fmt.Sprintf("host%d", d.num("host", 0, hosts-1)) }
	for i := range d.num("workloads", 1, 3) {
		d.line("- name: w%d", i)
		bytes := d.of("bytes", "1B", "2B", "1000B", "4097B", "20KB", "100KB", "300KB")
		switch kind := d.of("kind", "incast", "incast", "permutation", "all-to-all", "all-reduce-ring", "all-reduce-tree", "bursts", "long", "flows"); kind {
		case "incast":
			d.line("  kind: incast\n  src: all\n  dst: %s\n  bytes: %s", name(), bytes)
		case "permutation", "all-to-all", "all-reduce-ring", "all-reduce-tree":
			d.line("  kind: %s\n  bytes: %s\n  count: %d", kind, bytes, d.num("count", 0, 2))
			if strings.HasPrefix(kind, "all-reduce") {
				d.line("  chunks: %d", d.num("chunks", 1, 3))
			}
		case "bursts":
			d.line("  kind: bursts\n  src: %s\n  dst: %s\n  bytes: %s\n  every: %s\n  count: %d", name(), name(), bytes, d.of("every", "1us", "40us", "1ms"), d.num("count", 1, 9))
		case "long":
			d.line("  kind: long\n  src: %s\n  dst: %s", name(), name())
			if !d.chance("endless", 15) {
				d.line("  bytes: %s", bytes)
			}
		case "flows":
			d.line("  kind: flows\n  list:")
			for range d.num("flows", 1, 4) {
				d.line("  - {src: %s, dst: %s, bytes: %s, start: %s}", name(), name(), bytes, d.of("start", "0", "1ns", "7us"))
			}
		}
		switch d.of("service", "", "", "", "uc", "ud", "read", "send", "tcp") {
		case "uc":
			d.line("  service: uc\n  op: %s", d.of("op", "send", "write"))
		case "ud":
			d.line("  service: ud\n  op: send")
		case "read":
			d.line("  service: rc\n  op: read")
		case "send":
			d.line("  op: send")
		case "tcp":
			d.line("  op: tcp")
		}
		d.keys("  ", 12,
			[]string{"jitter", "1ns", "10us"}, []string{"priority", "0", "3", "4", "7"}, []string{"dscp", "0", "26", "34", "48"}, []string{"qps", "1", "2", "16", "64"},
			[]string{"one_qp", "true"}, []string{"message", "64B", "1000B", "8KB"}, []string{"rate", "1Gbps", "5Gbps", "5Tbps", "1Mbps"}, []string{"src_port", "1", "65535"})
		if i > 0 && d.chance("after", 20) {
			d.line("  after: w%d", i-1)
		}
	}
}

func (d *drawer) faults(hosts int) {
	if !d.chance("faults", 40) {
		return
	}
	d.line("faults:")
	for range d.num("count", 1, 4) {
		where := fmt.Sprintf("host%d/eth0", d.num("host", 0, hosts-1))
		at := d.of("at", "0", "1ns", "3us", "50us", "1ms")
		length := d.of("for", "1ns", "10us", "400us", "3ms")
		kind := d.of("fault", "link-down", "flap", "errors", "storm", "slow-receiver", "drop-next", "reroute")
		if kind == "reroute" {
			d.line("- at: %s\n  kind: %s", at, kind)
			continue
		}
		d.line("- at: %s\n  kind: %s\n  where: %s", at, kind, where)
		if d.chance("ends", 60) || kind == "flap" {
			if kind != "drop-next" {
				d.line("  for: %s", length)
			}
		}
		switch kind {
		case "flap":
			d.line("  every: %s\n  count: %d", d.of("every", "20us", "500us", "4ms"), d.num("count", 1, 5))
		case "errors":
			d.line("  error_rate: %s", d.of("errors", "1%", "50%", "100%"))
		case "storm":
			d.line("  priorities: %s", d.of("prios", "all", "[3]"))
		case "slow-receiver":
			d.line("  rate: %s", d.of("slow", "1bps", "1Mbps", "2Gbps"))
		case "drop-next":
			d.line("  count: %d\n  what: %s", d.num("count", 1, 40), d.of("what", "any", "data", "ack", "cnp", "pfc"))
		}
	}
}
