package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// What HPCC's simulator puts around payloads: 1,048 bytes for 1,000 (SIGCOMM'19
// HPCC's simulator as published), and 60 for an acknowledgement.
const (
	hpccHeader  = 48
	hpccControl = 60
)

// ReadHPCC reads the config.txt of HPCC's simulator and its relatives: lines
// KEY VALUE... with remarks in braces. Keys that only name output files are
// passed over; those that ask for what is not simulated are warnings. The files
// that it names are not read: they become the scenario's topology and workload.
//
// Flows of its flow.txt start at 2 s by convention; the scenario keeps that.
func ReadHPCC(name string, data []byte) (*Scenario, []Warning, error) {
	if len(data) > MaxFile {
		return nil, nil, errorAt(position{name, 1, 1}, "", "the file has %d bytes, the limit is %d", len(data), MaxFile)
	}
	h := hpccReader{file: name, s: Default(), seen: map[string]int{}, places: map[string]int{}, number: map[string]string{}}
	h.base()
	for i, line := range strings.Split(string(data), "\n") {
		if h.line = i + 1; h.line > maxHPCCLines {
			return nil, nil, h.fail("", "more than %d lines", maxHPCCLines)
		}
		if err := h.read(line); err != nil {
			return nil, nil, err
		}
	}
	if len(h.seen) == 0 {
		return nil, nil, errorAt(position{name, 1, 1}, "", "no line of the form KEY VALUE")
	}
	if err := h.finish(); err != nil {
		return nil, nil, err
	}
	h.s.file = name
	// Read it again as a file of ours, so that one set of checks holds.
	s, err := Parse(name, h.s.YAML())
	if err != nil {
		return nil, nil, h.translate(err)
	}
	return s, h.warnings, nil
}

// translate gives an error about the scenario the place of the key that it is from.
func (h *hpccReader) translate(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	p := position{h.file, max(1, h.places[e.Path]), 1}
	return errorAt(p, e.Path, "%s", e.Msg)
}

// maxHPCCLines is many times what such a file has.
const maxHPCCLines = 10_000

type hpccReader struct {
	file     string
	places   map[string]int // line of what became a knob
	line     int
	s        *Scenario
	seen     map[string]int    // line of each key
	number   map[string]string // values that are needed at the end
	maps     [3][]hpccRate
	warnings []Warning
}

// hpccRate is one pair of a map by link speed.
type hpccRate struct {
	rate  int64
	value string
}

// base is what that simulator does without being told.
func (h *hpccReader) base() {
	s := h.s
	s.Name = "hpcc"
	s.Until = UntilFlows
	s.Topology.Kind = FromFile
	s.Topology.Format = "hpcc"
	s.Packet = Packet{MTU: 1024, Payload: 1000, Header: hpccHeader, Control: hpccControl}
	b := &s.Switch.Buffer
	_ = b.applyPreset(hpccPreset)
	b.Preset, b.Total = "", 16<<20
	s.Switch.Scheduler = Scheduler{Strict: 1, Weights: s.Switch.Scheduler.Weights}
	s.Host.DCQCN = DCQCN{Preset: "hpcc"}
	s.Host.RDMA.AckEvery = 1
	s.Workload = []Workload{{Name: "flows", Kind: Trace, Format: "hpcc"}}
	w := &s.Workload[0]
	w.setDefaults()
	w.Format = "hpcc"
}

func (h *hpccReader) fail(key, format string, args ...any) error {
	return errorAt(position{h.file, h.line, 1}, key, format, args...)
}

func (h *hpccReader) warn(key, format string, args ...any) {
	h.warnings = append(h.warnings, Warning{
		Place: position{h.file, h.line, 1}.String(), Path: key, Text: oneLine(fmt.Sprintf(format, args...)),
	})
}

func (h *hpccReader) read(line string) error {
	if i := strings.IndexByte(line, '{'); i >= 0 {
		line = line[:i]
	}
	if i := strings.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	f := strings.Fields(line)
	if len(f) == 0 {
		return nil
	}
	key, args := f[0], f[1:]
	if first, ok := h.seen[key]; ok {
		return h.fail(key, "given twice; first in line %d", first)
	}
	if n := hpccArgs(key); n >= 0 && len(args) != n {
		return h.fail(key, "%d values; it has %d", len(args), n)
	}
	h.seen[key] = h.line
	return h.set(key, args)
}

// hpccKeys lists the keys that are understood, and how many values each has; -1
// is any number.
var hpccKeys = map[string]int{
	"ENABLE_QCN": 1, "USE_DYNAMIC_PFC_THRESHOLD": 1, "PACKET_PAYLOAD_SIZE": 1, "TOPOLOGY_FILE": 1, "FLOW_FILE": 1,
	"SIMULATOR_STOP_TIME": 1, "CC_MODE": 1, "ALPHA_RESUME_INTERVAL": 1, "RATE_DECREASE_INTERVAL": 1, "CLAMP_TARGET_RATE": 1,
	"RP_TIMER": 1, "EWMA_GAIN": 1, "FAST_RECOVERY_TIMES": 1, "RATE_AI": 1, "RATE_HAI": 1, "MIN_RATE": 1,
	"ERROR_RATE_PER_LINK": 1, "L2_ACK_INTERVAL": 1, "L2_BACK_TO_ZERO": 1, "HAS_WIN": 1, "ACK_HIGH_PRIO": 1, "LINK_DOWN": 3,
	"KMAX_MAP": -1, "KMIN_MAP": -1, "PMAX_MAP": -1, "BUFFER_SIZE": 1, "QLEN_MON_START": 1, "QLEN_MON_END": 1,
	"ENABLE_PFC": 1, "RANDOM_SEED": 1, "RATE_BOUND": 1,
	// 2017's ns3-rdma.
	"CNP_INTERVAL": 1, "BYTE_COUNTER": 1, "PAUSE_TIME": 1,
}

func hpccArgs(key string) int {
	if n, ok := hpccKeys[key]; ok {
		return n
	}
	return -1
}

// hpccOutputs are keys that say where results go, or how that program works.
var hpccOutputs = []string{
	"TRACE_FILE", "TRACE_OUTPUT_FILE", "FCT_OUTPUT_FILE", "PFC_OUTPUT_FILE", "QLEN_MON_FILE", "ENABLE_TRACE", "L2_CHUNK_SIZE",
	"DATA_RATE", "LINK_DELAY", "NIC_TOTAL_PAUSE_TIME",
}

// hpccOthers are keys of other congestion controls.
var hpccOthers = []string{
	"DCTCP_RATE_AI", "GLOBAL_T", "VAR_WIN", "FAST_REACT", "U_TARGET", "MI_THRESH", "INT_MULTI", "MULTI_RATE", "SAMPLE_FEEDBACK",
	"PINT_LOG_BASE", "PINT_PROB",
}

func (h *hpccReader) set(key string, args []string) error {
	s, k := h.s, &h.s.Host.DCQCN
	switch key {
	case "TOPOLOGY_FILE":
		s.Topology.File = args[0]
	case "FLOW_FILE":
		s.Workload[0].File = args[0]
	case "PACKET_PAYLOAD_SIZE":
		n, err := h.integer(key, args[0], 1, 4096)
		s.Packet.Payload = int(n)
		for s.Packet.MTU < s.Packet.Payload {
			s.Packet.MTU *= 2
		}
		return err
	case "SIMULATOR_STOP_TIME":
		return h.time(key, args[0], int64(sim.Second), &s.Duration)
	case "CC_MODE":
		n, err := h.integer(key, args[0], 0, 1000)
		h.number[key] = strconv.FormatInt(n, 10)
		return err
	case "ENABLE_QCN":
		return h.flag(key, args[0])
	case "ALPHA_RESUME_INTERVAL":
		return h.micros(k, "dce_tcp_rtt", key, args[0])
	case "RATE_DECREASE_INTERVAL":
		return h.micros(k, "rate_reduce_monitor_period", key, args[0])
	case "CNP_INTERVAL":
		return h.micros(k, "min_time_between_cnps", key, args[0])
	case "RP_TIMER":
		return h.micros(k, "rpg_time_reset", key, args[0])
	case "BYTE_COUNTER":
		n, err := h.integer(key, args[0], 0, 1<<40)
		return h.knob(k, "rpg_byte_reset", strconv.FormatInt(n, 10)+"B", err)
	case "CLAMP_TARGET_RATE":
		return h.knob(k, "clamp_tgt_rate", args[0], h.flag(key, args[0]))
	case "FAST_RECOVERY_TIMES":
		n, err := h.integer(key, args[0], 1, 31)
		return h.knob(k, "rpg_threshold", strconv.FormatInt(n, 10), err)
	case "EWMA_GAIN":
		g, err := h.gain(key, args[0])
		return h.knob(k, "dce_tcp_g", g, err)
	case "RATE_AI":
		return h.rate(k, "rpg_ai_rate", key, args[0])
	case "RATE_HAI":
		return h.rate(k, "rpg_hai_rate", key, args[0])
	case "MIN_RATE":
		return h.rate(k, "rpg_min_rate", key, args[0])
	case "BUFFER_SIZE":
		n, err := h.integer(key, args[0], 1, 1<<17)
		s.Switch.Buffer.Total = Bytes(n << 20)
		return err
	case "ERROR_RATE_PER_LINK":
		r, err := parseRatio(args[0])
		if err != nil || r > One {
			return h.fail(key, "%q is not a share from 0 to 1", clip(args[0]))
		}
		s.Topology.ErrorRate = r
	case "L2_ACK_INTERVAL":
		n, err := h.integer(key, args[0], 0, 1024)
		s.Host.RDMA.AckEvery = max(1, int(n))
		return err
	case "RANDOM_SEED":
		n, err := h.integer(key, args[0], 0, 1<<62)
		s.Seed = uint64(n)
		return err
	case "KMAX_MAP":
		return h.rates(0, key, args)
	case "KMIN_MAP":
		return h.rates(1, key, args)
	case "PMAX_MAP":
		return h.rates(2, key, args)
	case "LINK_DOWN":
		return h.linkDown(key, args)
	default:
		return h.other(key, args)
	}
	return nil
}

// other takes the keys of which only some values can be met.
func (h *hpccReader) other(key string, args []string) error {
	switch key {
	case "QLEN_MON_START", "QLEN_MON_END":
		_, err := h.integer(key, args[0], 0, 1<<62)
		return err
	case "USE_DYNAMIC_PFC_THRESHOLD":
		if args[0] == "0" {
			h.warn(key, "its static thresholds are not published; XOFF stays dynamic")
		}
		return h.flag(key, args[0])
	case "ENABLE_PFC":
		if args[0] == "0" {
			h.s.Switch.PFC.Priorities, h.s.Host.NIC.PFC = 0, 0
		}
		return h.flag(key, args[0])
	case "L2_BACK_TO_ZERO":
		if args[0] == "1" {
			h.warn(key, "a loss goes back to the lost packet, not to the first of the chunk")
		}
		return h.flag(key, args[0])
	case "HAS_WIN":
		h.number[key] = args[0]
		return h.flag(key, args[0])
	case "ACK_HIGH_PRIO":
		if args[0] == "1" {
			h.warn(key, "acknowledgements travel in the priority of their data")
		}
		return h.flag(key, args[0])
	case "RATE_BOUND":
		if args[0] == "0" {
			h.warn(key, "queue pairs are always held at their rate")
		}
		return h.flag(key, args[0])
	case "PAUSE_TIME":
		h.warn(key, "pauses last pfc.quanta and are refreshed")
		return nil
	}
	for _, list := range [][]string{hpccOutputs, hpccOthers} {
		for _, k := range list {
			if k == key {
				return nil
			}
		}
	}
	known := slices.Concat(slices.Sorted(maps.Keys(hpccKeys)), hpccOutputs, hpccOthers)
	if near := nearest(key, known); near != "" {
		return h.fail(key, "unknown key; did you mean %s?", near)
	}
	h.warn(key, "is not known here and does nothing")
	return nil
}

// finish joins what needs several keys.
func (h *hpccReader) finish() error {
	for _, key := range []string{"TOPOLOGY_FILE", "FLOW_FILE"} {
		if h.seen[key] == 0 {
			return errorAt(position{h.file, 1, 1}, key, "missing")
		}
	}
	h.line = max(h.seen["KMIN_MAP"], h.seen["KMAX_MAP"], h.seen["PMAX_MAP"])
	if err := h.marks(); err != nil {
		return err
	}
	d := &h.s.Host.DCQCN
	h.line = h.seen["CC_MODE"]
	switch h.number["CC_MODE"] {
	case "", "1":
	case "0":
		*d = DCQCN{Preset: PresetOff}
	default:
		names := map[string]string{"3": "HPCC", "7": "TIMELY", "8": "DCTCP", "10": "HPCC-PINT"}
		*d = DCQCN{Preset: PresetOff}
		h.warn("CC_MODE", "%s (%s) is not simulated: queue pairs send at line rate, and only PFC holds the queues",
			h.number["CC_MODE"], orText(names[h.number["CC_MODE"]], "unknown"))
	}
	if h.number["HAS_WIN"] == "1" {
		h.line = h.seen["HAS_WIN"]
		h.warn("HAS_WIN", "its windows are not simulated: nothing but DCQCN holds a queue pair")
	}
	if h.number["ENABLE_QCN"] == "0" {
		*d = DCQCN{Preset: PresetOff}
		h.s.Switch.ECN.Priorities = 0
	}
	// CNP_INTERVAL is of the simulator that sends real CNPs.
	if h.seen["CNP_INTERVAL"] > 0 && !d.Off() {
		d.Knobs = append(d.Knobs, Knob{"notify", "cnp"})
	}
	return nil
}

func (h *hpccReader) marks() error {
	e := &h.s.Switch.ECN
	for _, x := range h.maps[0] {
		kmax, err := h.integer("KMAX_MAP", x.value, 0, 1<<30)
		if err != nil {
			return err
		}
		m := RateMark{Rate: sim.Rate(x.rate), KMax: Bytes(kmax * 1000), PMax: One}
		low, ok := find(h.maps[1], x.rate)
		if !ok {
			return h.fail("KMIN_MAP", "no value for %d bit/s, which KMAX_MAP has", x.rate)
		}
		kmin, err := h.integer("KMIN_MAP", low, 0, 1<<30)
		if err != nil {
			return err
		}
		m.KMin = Bytes(kmin * 1000)
		if m.KMin > m.KMax {
			return h.fail("KMIN_MAP", "%s at %d bit/s is above Kmax, %s", m.KMin, x.rate, m.KMax)
		}
		p, ok := find(h.maps[2], x.rate)
		if !ok {
			return h.fail("PMAX_MAP", "no value for %d bit/s, which KMAX_MAP has", x.rate)
		}
		if m.PMax, err = parseRatio(p); err != nil || m.PMax > One {
			return h.fail("PMAX_MAP", "%q is not a probability", clip(p))
		}
		for _, o := range e.ByRate {
			if o.Rate == m.Rate {
				return h.fail("KMAX_MAP", "%d bit/s is there twice", x.rate)
			}
		}
		e.ByRate = append(e.ByRate, m)
	}
	for k, name := range []string{"KMIN_MAP", "PMAX_MAP"} {
		for _, x := range h.maps[k+1] {
			if _, ok := find(h.maps[0], x.rate); !ok {
				return h.fail(name, "%d bit/s has no value in KMAX_MAP", x.rate)
			}
		}
	}
	if len(e.ByRate) > 0 {
		// Ports of other speeds have the first set.
		e.KMin, e.KMax, e.PMax = e.ByRate[0].KMin, e.ByRate[0].KMax, e.ByRate[0].PMax
	}
	return nil
}

func find(list []hpccRate, rate int64) (string, bool) {
	for _, x := range list {
		if x.rate == rate {
			return x.value, true
		}
	}
	return "", false
}

func orText(s, def string) string {
	if s == "" {
		return def
	}
	return s
}
