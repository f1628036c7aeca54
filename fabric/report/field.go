package report

import (
	"reflect"
	"strings"
	"unicode"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// plan is how a struct is written.
type plan struct {
	fields []field
	// sparse structs leave out every zero.
	sparse bool
}

type field struct {
	name  string // in JSON
	index int
	text  bool // a uint64 as text: decimal, or hexadecimal
	hex   bool
}

var (
	timeType = reflect.TypeFor[sim.Time]()
	rateType = reflect.TypeFor[sim.Rate]()
)

// planOf derives the names of a struct's fields.
func planOf(plans map[reflect.Type]*plan, t reflect.Type) *plan {
	if p := plans[t]; p != nil {
		return p
	}
	p := &plan{sparse: t == reflect.TypeFor[result.PortPrio]()}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		name := snake(f.Name)
		if u := unitOf(t.Name(), f); u != "" && !strings.HasSuffix(name, "_"+u) && name != u {
			name += "_" + u
		}
		p.fields = append(p.fields, field{
			name: name, index: i,
			text: f.Type.Kind() == reflect.Uint64 && (f.Name == "Seed" || f.Name == "Digest"),
			hex:  f.Name == "Digest",
		})
	}
	plans[t] = p
	return p
}

// unitOf returns the unit that the name of a field ends in.
func unitOf(in string, f reflect.StructField) string {
	switch f.Type {
	case timeType:
		return "ps"
	case rateType:
		return "bps"
	}
	switch f.Type.Kind() {
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
	default:
		return ""
	}
	switch in + "." + f.Name {
	case "Host.RxBuffer", "Host.PeakRx",
		"PortPrio.PeakQueue", "PortPrio.MeanQueue", "PortPrio.KMin", "PortPrio.KMax", "PortPrio.PeakIngress", "PortPrio.XOFF", "PortPrio.PeakHeadroom",
		"Flow.Delivered", "Pause.Held", "Pause.Limit", "Lossless.Need", "Lossless.Have", "Lossless.Peak",
		"Shape.KMin", "Shape.KMax", "Shape.Payload", "Shape.Header", "Shape.Gap":
		return "bytes"
	case "Host.PacketRate":
		return "pps"
	}
	if in == "Buffer" {
		return "bytes"
	}
	return ""
}

// snake turns a Go name into words: "TxBytes" tx_bytes, "CNPsHandled"
// cnps_handled, "QPRate" qp_rate, "KMin" kmin.
func snake(s string) string {
	r := []rune(s)
	var b strings.Builder
	for i, c := range r {
		if i > 1 && unicode.IsUpper(c) {
			next := i+1 < len(r) && unicode.IsLower(r[i+1])
			plural := i+1 < len(r) && r[i+1] == 's' && (i+2 == len(r) || unicode.IsUpper(r[i+2]))
			if unicode.IsLower(r[i-1]) || next && !plural {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// words are the values of the kinds and reasons, by their numbers. One that is
// missing here is written as its number.
func words(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[result.FlowState]():
		return []string{"waiting", "running", "finished", "failed"}
	case reflect.TypeFor[result.Cause]():
		return []string{"buffer", "slow_receiver", "storm", "global_pause"}
	case reflect.TypeFor[result.DropReason]():
		return []string{
			"no_buffer", "headroom", "wred", "watchdog", "no_route", "ttl", "mtu",
			"fcs_error", "link_down", "nic_buffer", "rocev1", "fault",
		}
	case reflect.TypeFor[result.SeriesKind]():
		return []string{
			"queue_bytes", "port_rate_bps", "flow_rate_bps", "flow_rc_bps", "flow_alpha_q32", "marks", "cnps",
			"paused_ps", "buffer_shared_bytes", "host_queue_bytes",
		}
	}
	return nil
}
