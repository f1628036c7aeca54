package report

import (
	"encoding/json"
	"math"
	"time"
)

// BandwidthJSON is one size of a bandwidth test in the document of --json.
type BandwidthJSON struct {
	Bytes      uint64   `json:"bytes"`
	Iterations uint64   `json:"iterations"`
	Peak       *float64 `json:"bw_peak_gbps"` // null where no peak was measured
	Average    float64  `json:"bw_average_gbps"`
	MsgRate    float64  `json:"msg_rate_mpps"`
}

// LatencyJSON is one size of a latency test in the document of --json. A test
// over a time has only averages: the others are null.
type LatencyJSON struct {
	Bytes      uint64   `json:"bytes"`
	Iterations uint64   `json:"iterations"`
	Min        *float64 `json:"t_min_us"`
	Max        *float64 `json:"t_max_us"`
	Typical    *float64 `json:"t_typical_us"`
	Average    float64  `json:"t_avg_us"`
	Stdev      *float64 `json:"t_stdev_us"`
	P99        *float64 `json:"p99_us"`
	P999       *float64 `json:"p999_us"`
	PerSec     *float64 `json:"ops_per_sec,omitempty"`
}

// JSON returns the result for the document.
func (r Bandwidth) JSON() BandwidthJSON {
	j := BandwidthJSON{
		Bytes: r.Bytes, Iterations: r.Iters,
		Average: finite(Gbps(r.BytesPerSec)), MsgRate: finite(r.MsgPerSec / 1e6),
	}
	if p := finite(Gbps(r.PeakBytesPerSec)); p > 0 {
		j.Peak = &p
	}
	return j
}

// JSON returns the result for the document; over as for [LatencyHead].
func (r Latency) JSON(over bool) LatencyJSON {
	j := LatencyJSON{Bytes: r.Bytes, Iterations: r.Iters, Average: finite(Usec(r.Average))}
	if over {
		v := finite(r.PerSec)
		j.PerSec = &v
		return j
	}
	us := func(d time.Duration) *float64 { v := finite(Usec(d)); return &v }
	j.Min, j.Max, j.Typical, j.Stdev, j.P99, j.P999 = us(r.Min), us(r.Max), us(r.Typical), us(r.Stdev), us(r.P99), us(r.P999)
	return j
}

// finite replaces what JSON cannot say.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// CongestionJSON is the end state of one queue pair's congestion control in the
// document of --json.
type CongestionJSON struct {
	QPN         uint32  `json:"qpn"`
	Phase       string  `json:"phase"`
	Rate        float64 `json:"rate_mbps"`
	Target      float64 `json:"target_mbps"`
	Alpha       float64 `json:"alpha"`
	CNPsHandled uint64  `json:"cnps_handled"`
	Cuts        uint32  `json:"cuts"`
	Marked      uint64  `json:"packets_marked"`
	CNPsSent    uint64  `json:"cnps_sent"`
}

// Document is what --json prints, whatever happens: results, or an error, or
// both when a limit was missed.
type Document struct {
	Program string         `json:"program"` // "write_bw"
	Version string         `json:"version"`
	Options map[string]any `json:"options,omitempty"`
	Device  string         `json:"device,omitempty"`
	Local   string         `json:"local_gid,omitempty"`
	Remote  string         `json:"remote_gid,omitempty"`
	MTU     int            `json:"mtu,omitempty"`
	Results []any          `json:"results"`
	// Verified is true or false where both ends compared the data, null where
	// they did not.
	Verified *bool `json:"verified"`
	// CPUSeconds is the processor time of this process during the runs.
	CPUSeconds float64 `json:"cpu_seconds,omitempty"`
	// DCQCN is the end state of the queue pairs where congestion control was on.
	DCQCN []CongestionJSON `json:"dcqcn,omitempty"`
	Error string           `json:"error,omitempty"`
}

// Append appends the document, indented and with a closing newline.
func (d Document) Append(b []byte) []byte {
	if d.Results == nil {
		d.Results = []any{}
	}
	j, err := json.MarshalIndent(d, "", "  ")
	if err != nil { // nothing here can fail to marshal; say so if it does
		j, _ = json.Marshal(map[string]string{"program": d.Program, "error": err.Error()})
	}
	return append(append(b, j...), '\n')
}

// FileJSON is the document of perftest's --out_json, with its names and, which
// perftest 4.5 does not manage, as JSON. Results holds one object, or a list of
// them after a sweep over sizes.
type FileJSON struct {
	Info    map[string]any `json:"test_info"`
	Results any            `json:"results"`
}

func onOff(on bool) string {
	if on {
		return "ON"
	}
	return "OFF"
}

// Append appends the document with a closing newline.
func (f FileJSON) Append(b []byte) []byte {
	j, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		j, _ = json.Marshal(map[string]string{"error": err.Error()})
	}
	return append(append(b, j...), '\n')
}

// Info returns the header with the names that --out_json gives its parts.
func (h Header) Info() map[string]any {
	qps, method := h.cm()
	m := map[string]any{
		"test": h.Title, "Dual_port": "OFF", "Device": h.Device, "Number_of_qps": h.QPs,
		"Transport_type": "IB", "Connection_type": h.Connection, "Using_SRQ": onOff(h.SRQ),
		"PCIe_relax_order": "Unsupported", "ibv_wr_API": "OFF", "Mtu": h.MTU,
		"Link_type": "Ethernet", "GID_index": h.GIDIndex, "rdma_cm_QPs": qps, "Data_ex_method": method,
	}
	add := func(name string, v int) {
		if v > 0 {
			m[name] = v
		}
	}
	add("TX_depth", h.TxDepth)
	add("RX_depth", h.RxDepth)
	add("CQ_Moderation", h.CQMod)
	add("Post_List", h.PostList)
	add("Outstand_reads", h.OutReads)
	if h.OutReads == 0 {
		m["Max_inline_data"] = h.Inline
	}
	return m
}

// FileResult returns the result with the names of --out_json.
func (r Bandwidth) FileResult(gbits bool) map[string]any {
	unit := MiBps
	if gbits {
		unit = Gbps
	}
	return map[string]any{
		"MsgSize": r.Bytes, "n_iterations": r.Iters, "BW_peak": finite(unit(r.PeakBytesPerSec)),
		"BW_average": finite(unit(r.BytesPerSec)), "MsgRate": finite(r.MsgPerSec / 1e6),
	}
}

// FileResult returns the result with the names of --out_json.
func (r Latency) FileResult(over bool) map[string]any {
	if over {
		return map[string]any{"MsgSize": r.Bytes, "n_iterations": r.Iters, "t_avg": Usec(r.Average), "tps_average": finite(r.PerSec)}
	}
	return map[string]any{
		"MsgSize": r.Bytes, "n_iterations": r.Iters, "t_min": Usec(r.Min), "t_max": Usec(r.Max), "t_typical": Usec(r.Typical),
		"t_avg": Usec(r.Average), "t_stdev": Usec(r.Stdev), "percentile_99": Usec(r.P99), "percentile_99.9": Usec(r.P999),
	}
}
