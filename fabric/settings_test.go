package fabric

import (
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/swtch"
)

func loaded(t *testing.T, text string) *Run {
	t.Helper()
	sc, err := scenario.Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := Load(sc, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What a switch has for a port is what the scenario's own arithmetic says: by
// the rate of the port, in whole cells, for the frames that there are.
func TestHeadroomOfScenarios(t *testing.T) {
	const base = "topology: {kind: dumbbell, left: 1, right: 1, rate: 100Gbps, uplink_rate: 400Gbps, delay: 1us}\n" +
		"packet: {payload: 1000, header: 48, control: 64}\n"
	// Behind 100 Gb/s and 1 us: 2 us of line, two frames, a pause frame.
	const need100, need400 = 25_000 + 2*1048 + 64, 100_000 + 2*1048 + 64
	for _, x := range []struct {
		name, text string
		at         [2]int64 // have at the port to the host, at the trunk
		need       int64    // at the port to the host
	}{
		{"auto", "", [2]int64{need100, need400}, need100},
		{"by rate", "switch: {buffer: {headroom_by_rate: [{rate: 400Gbps, headroom: 50KB}]}}\n", [2]int64{need100, 50_000}, need100},
		{"hpcc", "switch: {buffer: {headroom: hpcc}}\n", [2]int64{37_500, 150_000}, need100},
		{"conweave", "switch: {buffer: {headroom: conweave}}\n", [2]int64{25_000 + 2*1048, 100_000 + 2*1048}, need100},
		// An acknowledgement of 64 bytes fills a cell of 256: four times as much.
		{"cells", "switch: {buffer: {cell: 256B}}\n", [2]int64{4 * need100, 4 * need400}, 4 * need100},
		{
			"longest frame is TCP's", "workload: [{kind: long, src: host0, dst: host1, bytes: 1MB, op: tcp}]\n",
			[2]int64{25_000 + 2*1518 + 64, 100_000 + 2*1518 + 64},
			25_000 + 2*1518 + 64,
		},
	} {
		r := loaded(t, base+x.text)
		st := &r.settings[r.Graph.Node("sw0")]
		have := [2]int64{st.headroom[0], st.headroom[1]}
		for i := range have {
			// Whole cells may make it a cell more.
			if cell := int64(st.sw.Buffer.Cell); have[i] < x.at[i] || have[i] >= x.at[i]+max(1, cell) {
				t.Errorf("%s: port %d has %d bytes of headroom, want %d", x.name, i, have[i], x.at[i])
			}
		}
		if st.need[0] < x.need || st.need[0] >= x.need+max(1, int64(st.sw.Buffer.Cell)) {
			t.Errorf("%s: port 0 needs %d bytes, want %d", x.name, st.need[0], x.need)
		}
	}
}

// A switch or a NIC that cannot be made is refused at the key that says so, in
// one line.
func TestImpossibleDevices(t *testing.T) {
	for text, want := range map[string]string{
		"switch:\n  buffer: {total: 20KB}\n":                          "x.yaml:2:12: switch.buffer: switch sw0: buffer of 20000 bytes: reserved ",
		"topology: {delay: 1s}\n":                                     "x.yaml:1:1: switch.buffer: switch sw0: buffer of 32000000 bytes: reserved ",
		"switch: {buffer: {headroom: 20MB}}\nworkload: []\nname: a\n": "x.yaml:1:19: switch.buffer: switch sw0: ",
	} {
		sc, err := scenario.Parse("x.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err = Load(sc, nil); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Settings that no other test sees the effect of reach the switch.
func TestSettingsReachTheSwitch(t *testing.T) {
	r := loaded(t, `
topology: {kind: star, hosts: 2}
switch:
  trust: pcp
  pcp_map: {0: 5, 3: 4}
  scheduler: {quantum: 2KB}
  pfc: {priorities: [4], watchdog: {enable: true, action: alert, detect: 1ms, restore: 2ms}}
`)
	sw := r.Graph.Node("sw0")
	r.switchConfig(sw) // once more: that of the ports is not kept
	c := &r.settings[sw].cfg
	if c.PCPToPrio[3] != 4 || c.Untagged != 5 || c.Trust != swtch.TrustPCP {
		t.Errorf("tags: %v, untagged %d", c.PCPToPrio, c.Untagged)
	}
	if c.Quantum != 2000 {
		t.Errorf("quantum %d", c.Quantum)
	}
	if w := c.Watchdog; w.Action != swtch.Alert || w.Detect.Micros() != 1000 || w.Restore.Micros() != 2000 {
		t.Errorf("watchdog %+v", w)
	}
	for _, q := range []int{4, 5} { // where frames with and without a tag are put
		if g := c.Port[0].Group[q]; g.Reserved == 0 {
			t.Errorf("priority %d has no memory", q)
		}
	}
}
