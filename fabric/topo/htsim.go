package topo

import (
	"fmt"
	"io"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo/token"
)

// ReadHTSim reads a .topo file of htsim: a Clos network of two or three tiers,
// by tier.
//
//	Nodes 1024
//	Tiers 3
//	Podsize 64
//	Tier 0
//	Downlink_speed_Gbps 100
//	Radix_Down 8
//	Radix_Up 8
//	Downlink_Latency_ns 1000
//	Switch_Latency_ns 0
//	Oversubscribed 1
//	Tier 1
//	Bundle 1
//	...
//
// Keys are case-insensitive, Queue_Down and Queue_Up are passed over (queues
// are the scenario's), "#" begins a comment. The radices must agree with each
// other: htsim derives some of them from speeds and Oversubscribed and goes by
// that, silently. Nodes are those of a SpineLeaf or ThreeTier, so host numbers
// are htsim's. name is the file's, for errors.
func ReadHTSim(r io.Reader, name string) (*Graph, error) {
	h := htsimReader{in: token.NewReader(r, name), tier: -1}
	for {
		f, ok := h.in.Next()
		if !ok {
			break
		}
		if err := h.line(f); err != nil {
			return nil, err
		}
	}
	if err := h.in.Err(); err != nil {
		return nil, err
	}
	g, err := h.build()
	if err != nil {
		return nil, h.in.FailFile("%s", err)
	}
	g.Name = name + ", " + g.Name
	return g, nil
}

// htsimKeys are the keys of a tier.
var htsimKeys = [...]string{
	"downlink_speed_gbps", "radix_down", "radix_up", "downlink_latency_ns", "switch_latency_ns", "oversubscribed", "bundle",
}

const (
	keySpeed = iota
	keyDown
	keyUp
	keyLinkLatency
	keySwitchLatency
	keyOversubscribed
	keyBundle
	numKeys
)

type htsimTier struct {
	given bool
	set   [numKeys]bool
	value [numKeys]int64
}

type htsimReader struct {
	in                    *token.Reader
	nodes, tiers, podSize int64
	tier                  int
	tierOf                [3]htsimTier
}

func (h *htsimReader) line(f token.Field) error {
	key := strings.ToLower(f.Text)
	if !f.New {
		return h.in.Fail(f, "%q does not belong here: a line has a key and a number", f.Text)
	}
	if !h.in.More() {
		if err := h.in.Err(); err != nil {
			return err
		}
		return h.in.Fail(f, "%s has no value", f.Text)
	}
	v, _ := h.in.Next()
	switch key {
	case "nodes":
		return h.head(v, f.Text, &h.nodes, 1, MaxNodes)
	case "tiers":
		return h.head(v, f.Text, &h.tiers, 2, 3)
	case "podsize":
		return h.head(v, f.Text, &h.podSize, 1, MaxNodes)
	case "tier":
		n, err := h.in.Int(v, f.Text, 0, 2)
		if err != nil {
			return err
		}
		if h.tierOf[n].given {
			return h.in.Fail(f, "tier %d comes twice", n)
		}
		h.tier = int(n)
		h.tierOf[n].given = true
		return nil
	case "queue_down", "queue_up":
		return nil
	}
	for i, k := range htsimKeys {
		if k != key {
			continue
		}
		if h.tier < 0 {
			return h.in.Fail(f, "%s comes before any tier", f.Text)
		}
		t := &h.tierOf[h.tier]
		if t.set[i] {
			return h.in.Fail(f, "%s of tier %d comes twice", f.Text, h.tier)
		}
		low, high := int64(1), int64(MaxPorts)
		switch i {
		case keySpeed:
			high = int64(MaxRate / sim.Gbps)
		case keyLinkLatency:
			high = int64(MaxDelay / sim.Nanosecond)
		case keySwitchLatency:
			low, high = 0, int64(MaxDelay/sim.Nanosecond)
		}
		n, err := h.in.Int(v, f.Text, low, high)
		t.set[i], t.value[i] = true, n
		return err
	}
	return h.in.Fail(f, "key %.40q is not known", f.Text)
}

func (h *htsimReader) head(v token.Field, what string, at *int64, low, high int64) (err error) {
	if *at != 0 {
		return h.in.Fail(v, "%s comes twice", what)
	}
	*at, err = h.in.Int(v, what, low, high)
	return err
}

// build checks what the file says against itself.
func (h *htsimReader) build() (*Graph, error) {
	switch {
	case h.nodes == 0:
		return nil, fmt.Errorf("nodes are missing")
	case h.tiers == 0:
		return nil, fmt.Errorf("tiers are missing")
	case h.podSize == 0:
		return nil, fmt.Errorf("podsize is missing")
	}
	last := int(h.tiers) - 1
	for i := range last + 1 {
		t := &h.tierOf[i]
		if !t.given {
			return nil, fmt.Errorf("tier %d is missing", i)
		}
		for _, k := range [...]int{keySpeed, keyDown, keyLinkLatency} {
			if !t.set[k] {
				return nil, fmt.Errorf("tier %d has no %s", i, htsimKeys[k])
			}
		}
		if i < last && !t.set[keyUp] {
			return nil, fmt.Errorf("tier %d has no %s", i, htsimKeys[keyUp])
		}
		for _, k := range [...]int{keyOversubscribed, keyBundle} {
			if !t.set[k] {
				t.value[k] = 1
			}
		}
	}
	pods := h.nodes / h.podSize
	down := h.tierOf[0].value[keyDown]
	leaves := h.podSize / down
	switch {
	case h.nodes%h.podSize != 0:
		return nil, fmt.Errorf("nodes %d are no multiple of podsize %d", h.nodes, h.podSize)
	case h.podSize%down != 0:
		return nil, fmt.Errorf("podsize %d is no multiple of radix_down %d of tier 0", h.podSize, down)
	case h.tierOf[0].value[keyBundle] != 1:
		return nil, fmt.Errorf("bundle %d of tier 0: hosts have one link", h.tierOf[0].value[keyBundle])
	case last == 1 && pods != 1:
		return nil, fmt.Errorf("two tiers have one pod: podsize %d is not nodes %d", h.podSize, h.nodes)
	}
	aggs, err := h.above(0, leaves)
	if err != nil {
		return nil, err
	}
	if last == 1 {
		return h.twoTiers(leaves, aggs)
	}
	plane, err := h.above(1, pods)
	if err != nil {
		return nil, err
	}
	return h.threeTiers(pods, leaves, aggs, aggs*plane)
}

// above returns the number of switches to which one of a tier goes up, and
// checks that each of them goes down to so many.
func (h *htsimReader) above(tier int, downTo int64) (int64, error) {
	low, up := &h.tierOf[tier], &h.tierOf[tier+1]
	bundle, radix := up.value[keyBundle], low.value[keyUp]
	if radix%bundle != 0 {
		return 0, fmt.Errorf("radix_up %d of tier %d is no multiple of bundle %d of tier %d", radix, tier, bundle, tier+1)
	}
	if have := up.value[keyDown]; have != downTo*bundle {
		return 0, fmt.Errorf("radix_down %d of tier %d: %d are needed, for %d switches by %d", have, tier+1, downTo*bundle, downTo, bundle)
	}
	// What htsim goes by: capacity down = oversubscription × capacity up.
	capDown := low.value[keyDown] * low.value[keySpeed]
	capUp := radix * up.value[keySpeed] * low.value[keyOversubscribed]
	if capDown != capUp {
		return 0, fmt.Errorf("tier %d has %d x %d Gb/s down and %d x %d Gb/s up, which is not oversubscribed %d",
			tier, low.value[keyDown], low.value[keySpeed], radix, up.value[keySpeed], low.value[keyOversubscribed])
	}
	return radix / bundle, nil
}

func (h *htsimReader) rate(tier int) sim.Rate {
	return sim.Rate(h.tierOf[tier].value[keySpeed]) * sim.Gbps
}

func (h *htsimReader) delay(tier int) sim.Time {
	return sim.Time(h.tierOf[tier].value[keyLinkLatency]) * sim.Nanosecond
}

func (h *htsimReader) twoTiers(leaves, spines int64) (*Graph, error) {
	g, err := SpineLeaf{
		Leaves: int(leaves), Spines: int(spines), HostsPerLeaf: int(h.tierOf[0].value[keyDown]),
		UplinksPerSpine: int(h.tierOf[1].value[keyBundle]),
		Rate:            h.rate(0), UplinkRate: h.rate(1), Delay: h.delay(0), UplinkDelay: h.delay(1),
	}.Build()
	return h.latencies(g), err
}

func (h *htsimReader) threeTiers(pods, leaves, aggs, cores int64) (*Graph, error) {
	g, err := ThreeTier{
		Pods: int(pods), LeavesPerPod: int(leaves), AggsPerPod: int(aggs), Cores: int(cores),
		HostsPerLeaf: int(h.tierOf[0].value[keyDown]), UplinksPerAgg: int(h.tierOf[1].value[keyBundle]),
		LinksPerCore: int(h.tierOf[2].value[keyBundle]),
		Rate:         h.rate(0), UplinkRate: h.rate(1), CoreRate: h.rate(2),
		Delay: h.delay(0), UplinkDelay: h.delay(1), CoreDelay: h.delay(2),
	}.Build()
	return h.latencies(g), err
}

func (h *htsimReader) latencies(g *Graph) *Graph {
	if g == nil {
		return nil
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Kind == Switch {
			n.Latency = sim.Time(h.tierOf[n.Tier-1].value[keySwitchLatency]) * sim.Nanosecond
		}
	}
	return g
}
