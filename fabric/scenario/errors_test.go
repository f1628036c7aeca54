package scenario

import (
	"errors"
	"strings"
	"testing"
)

// Bad files give one line: place, key, value, limit.
func TestParseErrors(t *testing.T) {
	star := "topology: {hosts: 4}\n"
	for _, c := range []struct{ in, want string }{
		// Form.
		{"[", `f:1:1: sequence end token ']' not found`},
		{"a\x00", `f:1:2: a zero byte: not a text file`},
		{"name: \xff", `f:1:1: not UTF-8 text`},
		{"just text", `f:1:1: "just text" where a map of keys is wanted, as in topology:`},
		{"- a", `f:1:1: a list where a map of keys is wanted, as in topology:`},
		{"name: a\n---\nname: b", `f:3:1: a second document; a scenario is one`},
		{"name: a\nname: b", `f:2:1: mapping key "name" already defined at [1:1]`},
		{"switch: {mtu: 1, mtu: 2}", `f:1:18: mapping key "mtu" already defined at [1:10]`},
		{"name: *a", `f:1:7: alias *a: there is no anchor &a before it`},
		{"name: !!str a", `f:1:7: tag !!str: tags are not used here`},
		{"? [a]\n: 1", `f:2:1: found an invalid key for this map`},
		{"host: {<<: 3}", `f:1:8: << merges maps, not a value`},
		{strings.Repeat("[", 500), `f:1:401: nested more than 40 deep`},
		{strings.Repeat("- ", 50) + "a", `f:1:1: nested more than 40 deep`},
		{"x: " + strings.Repeat("[", 60) + strings.Repeat("]", 60), `f:1:44: nested more than 40 deep`},
		{strings.Repeat("\n", 20001), `f:20002:1: more than 20000 lines; long lists belong in a file of flows or links`},
		{"x: [" + strings.Repeat("1,", 50001) + "]", `f:1:100006: more than 50000 commas; long lists belong in a file of flows or links`},
		// Keys.
		{"topologie: {}", `f:1:1: topologie: unknown key; did you mean topology?`},
		{"switch:\n  ecn:\n    kmn: 8KB", `f:3:5: switch.ecn.kmn: unknown key; did you mean kmin?`},
		{"packet: {colour: red}", `f:1:10: packet.colour: unknown key; keys here: mtu, payload, header, control, gap`},
		{"host: {dcqcn: {rpg_ia_rate: 5}}", `f:1:16: host.dcqcn.rpg_ia_rate: unknown key; did you mean rpg_ai_rate?`},
		{"switches: [{match: leaf0, trusst: dscp}]", `f:1:27: switches[0].trusst: unknown key; did you mean trust?`},
		{"topology: star", `f:1:11: topology: "star" where a map is wanted`},
		{"workload: {kind: incast}", `f:1:12: workload: a map where a list is wanted`},
		{"workload: [~]", `f:1:12: workload[0]: an empty entry`},
		{"workload: [3]", `f:1:12: workload[0]: "3" where a map is wanted`},
		{"seed: [1]", `f:1:7: seed: a list where a value is wanted`},
		{"title:", `f:1:8: title: nothing where a value is wanted`},
		// Values.
		{"topology: {rate: 100}", `f:1:18: topology.rate: "100" has no unit: give bps, Kbps, Mbps, Gbps or Tbps, as in 100Gbps`},
		{"topology: {rate: 0bps}", `f:1:18: topology.rate: 0bps is below the least value, 1Mbps`},
		{"topology: {rate: 100GBps}", `f:1:18: topology.rate: "100GBps": unknown unit "GBps": give bps, Kbps, Mbps, Gbps or Tbps`},
		{"topology: {rate: fast}", `f:1:18: topology.rate: "fast" is not a rate, as in 100Gbps`},
		{"topology: {delay: 1}", `f:1:19: topology.delay: "1" has no unit: give ps, ns, us, ms or s, as in 10us`},
		{"topology: {delay: 0.5ps}", `f:1:19: topology.delay: "0.5ps" is finer than 1 ps`},
		{"topology: {delay: -1us}", `f:1:19: topology.delay: -1us is below the least value, 0ns`},
		{"topology: {delay: 99999999999999s}", `f:1:19: topology.delay: "99999999999999s" is too large`},
		{"switch: {ecn: {kmin: 8}}", `f:1:22: switch.ecn.kmin: "8" has no unit: give B, KB (1000), KiB (1024), MB, MiB, GB or GiB, as in 8KB`},
		{"switch: {ecn: {pmax: 1.5}}", `f:1:22: switch.ecn.pmax: 1.5 is above the greatest value, 1`},
		{"switch: {ecn: {pmax: 200%}}", `f:1:22: switch.ecn.pmax: 200% is above the greatest value, 1`},
		{"switch: {ecn: {pmax: -1%}}", `f:1:22: switch.ecn.pmax: "-1%" is below 0`},
		{"switch: {buffer: {alpha: 0}}", `f:1:26: switch.buffer.alpha: 0 is below the least value, 1/1024`},
		{"switch: {buffer: {alpha: 1/0}}", `f:1:26: switch.buffer.alpha: "1/0" divides by 0`},
		{"switch: {buffer: {headroom: lots}}", `f:1:29: switch.buffer.headroom: "lots" is not auto, hpcc, conweave, or an amount of data up to 1GB, as in 40KB`},
		{"switch: {buffer: {preset: tomahwk}}", `f:1:27: switch.buffer.preset: unknown preset "tomahwk"; did you mean tomahawk?`},
		{"switch: {pfc: {priorities: [3, 8]}}", `f:1:32: switch.pfc.priorities: "8" is not a priority from 0 to 7`},
		{"switch: {pfc: {quanta: 65536}}", `f:1:24: switch.pfc.quanta: 65536 is above the greatest value, 65535`},
		{"switch: {trust: vlan}", `f:1:17: switch.trust: unknown "vlan"; give dscp, pcp`},
		{"switch: {mode: cut-trough}", `f:1:16: switch.mode: unknown "cut-trough"; did you mean cut-through?`},
		{"switch: {dscp_map: {64: 3}}", `f:1:21: switch.dscp_map: key "64" is not a number from 0 to 63`},
		{"switch: {dscp_map: {26: 9}}", `f:1:25: switch.dscp_map.26: 9 is above the greatest value, 7`},
		{"switch: {dscp_map: [3]}", `f:1:20: switch.dscp_map: a list where a map is wanted, as in {3: 1}`},
		{"switch: {scheduler: {weights: {3: 0}}}", `f:1:35: switch.scheduler.weights.3: 0 is below the least value, 1`},
		{"switch: {ecmp: {seed: random}}", `f:1:23: switch.ecmp.seed: "random" is not per-switch, same, or a number up to 4294967295`},
		{"packet: {gap: maybe}", `f:1:15: packet.gap: "maybe" is not true or false`},
		{"seed: -1", `f:1:7: seed: "-1" is not a whole number from 0`},
		{"seed: 010", `f:1:7: seed: "010" is not a whole number from 0`},
		{"packet: {mtu: big}", `f:1:15: packet.mtu: "big" is not a whole number`},
		{"host: {rdma: {priority: 8}}", `f:1:25: host.rdma.priority: 8 is above the greatest value, 7`},
		{"host: {dcqcn: {preset: mlx4}}", `f:1:24: host.dcqcn.preset: unknown preset "mlx4"; did you mean mlx5?`},
		{"host: {dcqcn: {g: 5/4}}", `f:1:19: host.dcqcn.dce_tcp_g: 5/4 is not allowed: 1/4096 to 1`},
		{"expect: [{what: pauses, min: few}]", `f:1:30: expect[0].min: "few" is not a number, as in 12, 5%, 85Gbps, 200us or 8KB`},
		// What keys say together.
		{"packet: {mtu: 1500}", `f:1:15: packet.mtu: 1500 is not a path MTU: give 256, 512, 1024, 2048 or 4096`},
		{"packet: {header: 0}", `f:1:18: packet.header: 0 is less than BTH and ICRC, 16 bytes; -1 is the real headers`},
		{"packet: {header: 15}", `f:1:18: packet.header: 15 is less than BTH and ICRC, 16 bytes; -1 is the real headers`},
		{"packet: {payload: 1500}", `f:1:19: packet.payload: 1500 is above the MTU, 1024`},
		{"switch: {ecn: {kmin: 400KB, kmax: 100KB}}", `f:1:22: switch.ecn.kmin: 400KB is above kmax, 100KB`},
		{"switch: {ecn: {kmin: 4MB}}", `f:1:22: switch.ecn.kmin: 4MB is above kmax, 1.6MB`},
		{"switch: {ecn: {by_rate: [{kmin: 1KB, kmax: 2KB}]}}", `f:1:27: switch.ecn.by_rate[0]: missing rate: the port speed that it is for`},
		{"switch: {ecn: {by_rate: [{rate: 1Gbps}, {rate: 1Gbps}]}}", `f:1:48: switch.ecn.by_rate[1].rate: 1Gbps has thresholds already`},
		{"switch: {ecn: {by_priority: [{priority: 3, kmin: 2KB, kmax: 1KB}]}}", `f:1:50: switch.ecn.by_priority[0].kmin: 2KB is above kmax, 1KB`},
		{"switch: {buffer: {xoff: 10KB, xon: 20KB}}", `f:1:36: switch.buffer.xon: 20KB is above xoff, 10KB`},
		{"switch: {buffer: {total: 1MB, headroom: 2MB}}", `f:1:41: switch.buffer.headroom: 2MB is more than the whole buffer, 1MB`},
		{"switch: {prio_group_map: {0: 3}}", `f:1:27: switch.prio_group_map: priorities 0 and 3 share group 3, but only one of them is lossless`},
		{"switches: [{match: leaf0, ecn: {kmin: 2MB}}]", `f:1:39: switches[0].ecn.kmin: 2MB is above kmax, 1.6MB`},
		{"switches: [{ecn: {kmin: 2MB}}]", `f:1:13: switches[0].match: missing: the names that it is for, as in leaf0 or leaf*`},
		{"switches: [{match: 'a[', trust: pcp}]", `f:1:20: switches[0].match: "a[" is not a pattern, as in host*`},
		{"hosts: [{match: host9..host3}]", `f:1:17: hosts[0].match: "host9..host3" is not a range, as in host8..host23`},
		{"host: {mtu: 9000}", `f:1:13: host.mtu: 9000 is above the greatest value, 4096`},
		{"host: {nic: {xoff: 2MB}}", `f:1:20: host.nic.xoff: 2MB is more than rx_buffer, 1MB`},
		{"host: {rdma: {service: ud, op: read}}", `f:1:32: host.rdma.op: read needs the service rc, not ud`},
		{"host: {dcqcn: {rpg_ai_rate: fast}}", `f:1:29: host.dcqcn.rpg_ai_rate: "fast" is not a rate: a number of Mb/s, or a number with kbps, Mbps or Gbps, or line/n`},
		{"host: {dcqcn: {rpg_time_reset: 0, rpg_byte_reset: 0}}", `f:1:16: host.dcqcn: rpg_time_reset and rpg_byte_reset are both 0: a rate once cut would never rise`},
		{"topology: {delay: 1us, cable: 3m}", `f:1:31: topology.cable: delay is given too; give one of them`},
		{"topology: {kind: fat-tree, k: 5}", `f:1:31: topology.k: 5 is odd`},
		{"topology: {kind: fat-tree, k: 8, oversubscription: 3}", `f:1:52: topology.oversubscription: 3 does not divide K/2 = 4`},
		{"topology: {kind: spine-leaf, spines: 0}", `f:1:38: topology.spines: 0 is less than 1`},
		{"topology: {kind: spine-leaf, leaves: 5000}", `f:1:38: topology.leaves: 5000 is over the limit of 4096`},
		{"topology: {kind: ring, switches: 2}", `f:1:34: topology.switches: 2 is less than 3`},
		{"topology: {kind: file}", `f:1:12: topology.file: missing: kind is file`},
		{"topology: {file: a.txt}", `f:1:18: topology.file: kind is star; a file needs kind: file`},
		{"topology: {kind: explicit, links: [{a: x, b: y}]}", `f:1:12: topology.nodes: missing: kind is explicit`},
		{"topology: {kind: explicit, nodes: [{name: x, kind: host}, {name: x, kind: host}], links: [{a: x, b: x}]}", `f:1:66: topology.nodes[1].name: "x" is there already`},
		{"topology: {kind: explicit, nodes: [{name: aa, kind: host}, {name: bb, kind: switch}], links: [{a: aa, b: ab}]}", `f:1:106: topology.links[0].b: there is no node "ab"; did you mean aa?`},
		{"topology: {kind: explicit, nodes: [{name: a, kind: host}, {name: b, kind: switch}], links: [{a: a, b: b}, {a: b, b: a}]}", `f:1:108: topology.links[1]: joins b and a, as links[0] does; give count for parallel links`},
		{"topology: {kind: explicit, nodes: [{name: a, kind: host}, {name: b, kind: switch}, {name: c, kind: host}], links: [{a: a, b: b}]}", `f:1:91: topology.nodes[2].name: c has no link`},
		{"topology: {kind: explicit, nodes: [{name: a/b, kind: host}], links: [{a: a, b: b}]}", `f:1:43: topology.nodes[0].name: "a/b" is not a name of letters, digits, - and _`},
		// Traffic.
		{star + "workload: [{bytes: 1MB}]", `f:2:13: workload[0].kind: missing: what traffic it is, as in incast, poisson, long`},
		{star + "workload: [{kind: incast, src: host1, dst: host0}]", `f:2:13: workload[0].bytes: missing: the size of each flow, as in 1MB`},
		{star + "workload: [{kind: bursts, src: host1, dst: host0, bytes: 1KB}]", `f:2:13: workload[0].every: missing: the time between bursts, as in 400us`},
		{star + "workload: [{kind: poisson, load: 120%}]", `f:2:34: workload[0].load: 120% is above the greatest value, 1`},
		{star + "workload: [{kind: poisson, load: 20%}]", `f:2:13: workload[0].cdf: missing: the distribution of sizes, as in WebSearch`},
		{star + "workload: [{kind: all-to-all, bytes: 1KB}, {kind: all-to-all, bytes: 1KB}]", `f:2:45: workload[1].name: "all-to-all" is the name of workload[0] already; give each its own`},
		{star + "workload: [{name: a, kind: all-to-all, bytes: 1KB, after: c}]", `f:2:59: workload[0].after: there is no workload "c"`},
		{star + "workload: [{name: a, kind: all-to-all, bytes: 1KB, after: b}, {name: b, kind: all-to-all, bytes: 1KB, after: a}]", `f:2:110: workload[1].after: b waits for itself`},
		{star + "workload: [{name: a, kind: long, src: host0, dst: host1}, {name: b, kind: all-to-all, bytes: 1KB, after: a}]", `f:2:106: workload[1].after: a is endless, so nothing comes after it`},
		{star + "workload: [{kind: flows, list: [{src: host0, dst: host1}]}]", `f:2:34: workload[0].list[0].bytes: missing: the size of the flow, as in 1MB`},
		{star + "workload: [{kind: all-to-all, bytes: 1KB, start: 20s}]", `f:2:50: workload[0].start: 20s is after the end of the run, 10s`},
		{star + "workload: [{kind: long, src: host0, dst: host1, op: tcp, qps: 3}]", `f:2:63: workload[0].qps: op is tcp, which has none`},
		{star + "workload: [{kind: long, src: host0, dst: host1, op: read, service: uc}]", `f:2:53: workload[0].op: read needs the service rc, not uc`},
		{star + "until: duration\nworkload: [{kind: long, src: host0, dst: host1}]", `f:2:8: until: duration is to end the run, but there is no duration`},
		{"faults: [{where: host0}]", `f:1:11: faults[0].kind: missing: what goes wrong, as in link-down`},
		{"faults: [{kind: storm}]", `f:1:11: faults[0].where: missing: a link leaf0-spine1, a port leaf0/Ethernet3, or a host`},
		{"faults: [{kind: reroute, where: host0}]", `f:1:33: faults[0].where: a reroute is everywhere`},
		{"faults: [{kind: reroute, for: 1ms}]", `f:1:31: faults[0].for: a reroute has none`},
		{"faults: [{kind: storm, where: host0, rate: 1Gbps}]", `f:1:44: faults[0].rate: a storm has none`},
		{"faults: [{kind: flap, count: 2, where: host0, for: 1ms, every: 1ms}]", `f:1:64: faults[0].every: 1ms is not longer than for, 1ms: the link never comes up`},
		{"faults: [{kind: slow-receiver, where: host0}]", `f:1:11: faults[0].rate: missing: what the host can take in, as in 10Gbps; a host that takes nothing is a storm`},
		{"record: {series: [queue, colour]}", `f:1:18: record.series: unknown series "colour"; give queue, port-rate, flow-rate, rc, alpha, marks, cnps, paused, buffer, host-queue, all or none`},
		{"expect: [{min: 3}]", `f:1:11: expect[0].what: missing: the metric, as in flow.long.goodput`},
		{"expect: [{what: pauses}]", `f:1:11: expect[0]: none of min, max and near is given`},
		{"expect: [{what: pauses, min: 3, max: 1}]", `f:1:30: expect[0].min: 3 is above max, 1`},
		{"expect: [{what: pauses, min: 3, max: 1us}]", `f:1:38: expect[0].max: 1us has another unit than the other bounds`},
	} {
		_, err := Parse("f", []byte(c.in))
		in := strings.ReplaceAll(c.in, "\n", "⏎")
		if len(in) > 100 {
			in = in[:100] + "..."
		}
		if err == nil {
			t.Errorf("%s\n  taken, want %s", in, c.want)
			continue
		}
		if got := err.Error(); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", in, got, c.want)
		}
		var e *Error
		if !errors.As(err, &e) || e.Line < 1 || strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("%s: %#v", in, err)
		}
	}
	if _, err := Parse("f", make([]byte, MaxFile+1)); err == nil || !strings.Contains(err.Error(), "16777217 bytes, the limit is 16777216") {
		t.Error(err)
	}
}

// Aliases make no more of a file than its size allows.
func TestAliasesAreBounded(t *testing.T) {
	in := "x:\n  a: &a [1,1,1,1,1,1,1,1,1,1]\n"
	for _, p := range []string{"ab", "bc", "cd", "de", "ef", "fg", "gh", "hi"} {
		in += "  " + p[1:] + ": &" + p[1:] + " [" + strings.Repeat("*"+p[:1]+",", 10) + "]\n"
	}
	in += "record: {series: *i}\n"
	if _, err := Parse("f", []byte(in)); err == nil {
		t.Error("taken")
	}
}

// An override is like a line of the file, with its own place.
func TestOverrides(t *testing.T) {
	const file = `
topology: {hosts: 4}
switches:
  - {match: sw0, trust: pcp}
workload:
  - {name: a, kind: long, src: host0, dst: host1, bytes: 1MB}
  - {kind: bursts, src: host0, dst: host1, bytes: 1KB, every: 1us}
`
	s, err := ParseSet("f", []byte(file), []string{
		"seed=9", "topology.hosts=8", "ecn.kmin=8KB", "kmax=9KB", "pfc.priorities=[3, 4]", "workload.a.bytes=2MB",
		"workload[1].every=2us", "workload.bursts.bytes=4KB", "switches.sw0.trust=dscp", "switch.dscp_map.26=5",
		"dcqcn.preset=paper", "rpg_ai_rate=50", "dcqcn.g=1/64", "workload.0.src=[host2]", "packet={mtu: 4096}", "title=a = b: c",
	})
	if err != nil {
		t.Fatal(err)
	}
	sw := s.SwitchFor("sw0")
	if s.Seed != 9 || s.Topology.Hosts != 8 || s.Switch.ECN.KMin != 8e3 || s.Switch.ECN.KMax != 9e3 || s.Switch.PFC.Priorities != 0x18 ||
		s.Workload[0].Bytes != 2e6 || s.Workload[1].Every != 2e6 || s.Workload[1].Bytes != 4e3 || sw.Trust != TrustDSCP ||
		sw.DSCPMap[26] != 5 || s.Packet.MTU != 4096 || s.Workload[0].Src[0] != "host2" || s.Title != "a = b: c" {
		t.Errorf("%s", s.YAML())
	}
	p, err := s.Host.DCQCN.Params()
	if err != nil || p.RPGAIRate != 50e6 || p.DCETCPG.Den != 64 || p.RPGThreshold != 5 {
		t.Errorf("%+v %v", p, err)
	}
	for _, c := range []struct{ set, want string }{
		{"seed", `--set seed: no =; an override is key.path=value`},
		{"=3", `--set =3: "" is not a path of keys, as in switch.ecn.kmin`},
		{"ecn..kmin=3", `--set ecn..kmin=3: "ecn..kmin" is not a path of keys, as in switch.ecn.kmin`},
		{"ecn.kmin=8", `--set ecn.kmin=8: switch.ecn.kmin: "8" has no unit: give B, KB (1000), KiB (1024), MB, MiB, GB or GiB, as in 8KB`},
		{"ecn.kmin=4MB", `--set ecn.kmin=4MB: switch.ecn.kmin: 4MB is above kmax, 1.6MB`},
		{"mtu=4096", `--set mtu=4096: mtu: may mean packet.mtu or switch.mtu or host.mtu`},
		{"g=1/64", `--set g=1/64: g: may mean host.tcp.g or host.dcqcn.g`},
		{"ecn.kmn=3", `--set ecn.kmn=3: ecn.kmn: unknown key; did you mean ecn?`},
		{"switch.ecn.kmn=3", `--set switch.ecn.kmn=3: switch.ecn.kmn: unknown key; did you mean kmin?`},
		{"rainbow=3", `--set rainbow=3: rainbow: unknown key`},
		{"workload.c.bytes=3", `--set workload.c.bytes=3: workload: no entry "c", it has a, long, bursts`},
		{"workload.7.bytes=3", `--set workload.7.bytes=3: workload: no entry 7, it has 0 to 1`},
		{"faults.0.at=3ms", `--set faults.0.at=3ms: faults: the file gives none, so "0" cannot be set`},
		{"seed.x=3", `--set seed.x=3: seed: has no keys below it, so "x" cannot be set`},
		{"topology.hosts=", `--set topology.hosts=: topology.hosts: nothing where a value is wanted`},
		{"topology.hosts=[", `--set topology.hosts=[: topology.hosts: "[" is not a value`},
	} {
		_, err := ParseSet("f", []byte(file), []string{c.set})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", c.set, err, c.want)
		}
	}
}
