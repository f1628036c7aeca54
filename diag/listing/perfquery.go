package listing

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// perfFields are the lines of perfquery -x and the files of counters/ behind them.
var perfFields = []struct{ name, file string }{
	{"PortXmitData", "port_xmit_data"},
	{"PortRcvData", "port_rcv_data"},
	{"PortXmitPkts", "port_xmit_packets"},
	{"PortRcvPkts", "port_rcv_packets"},
	{"PortUnicastXmitPkts", "unicast_xmit_packets"},
	{"PortUnicastRcvPkts", "unicast_rcv_packets"},
	{"PortMulticastXmitPkts", "multicast_xmit_packets"},
	{"PortMulticastRcvPkts", "multicast_rcv_packets"},
	{"SymbolErrorCounter", "symbol_error"},
	{"LinkErrorRecoveryCounter", "link_error_recovery"},
	{"LinkDownedCounter", "link_downed"},
	{"PortRcvErrors", "port_rcv_errors"},
	{"PortRcvRemotePhysicalErrors", "port_rcv_remote_physical_errors"},
	{"PortRcvSwitchRelayErrors", "port_rcv_switch_relay_errors"},
	{"PortXmitDiscards", "port_xmit_discards"},
	{"PortXmitConstraintErrors", "port_xmit_constraint_errors"},
	{"PortRcvConstraintErrors", "port_rcv_constraint_errors"},
	{"LocalLinkIntegrityErrors", "local_link_integrity_errors"},
	{"ExcessiveBufferOverrunErrors", "excessive_buffer_overrun_errors"},
	{"VL15Dropped", "VL15_dropped"},
	{"PortXmitWait", "port_xmit_wait"},
}

// PerfQuery is perfquery -x of one port. The original asks the port over InfiniBand's
// management datagrams, which RoCE does not have; this reads what the driver wrote
// into sysfs, and the first line says so. Data counters are in words of four bytes, as
// there. Counters that the driver does not have are left out; those that could not be
// read are said at the end. Without a device it is the first with an active port.
func PerfQuery(s *snapshot.Snapshot, device string, number int) ([]byte, error) {
	d, q, err := perfPort(s, device, number)
	if err != nil {
		return nil, err
	}
	b := fmt.Appendf(nil, "# Port extended counters: %s port %d, from sysfs counters/", d.Name, q.Number)
	if lid := q.LID.Or(0); lid != 0 {
		b = fmt.Appendf(b, " (Lid %d)", lid)
	}
	b = append(b, '\n')
	b = dotted(b, "PortSelect", strconv.Itoa(q.Number))
	b = dotted(b, "CounterSelect", "0x0000")
	if len(q.Counters) == 0 {
		return nil, fail(255, "%s port %d has no counters/ in sysfs; its hardware counters: rdma statistic", d.Name, q.Number)
	}
	var odd []string
	for _, f := range perfFields {
		v := q.Counters.Get(f.file)
		if n, ok := v.Get(); ok {
			b = dotted(b, f.name, strconv.FormatUint(n, 10))
		} else if !v.IsZero() {
			odd = append(odd, fmt.Sprintf("# %s: %s", f.name, v.Why()))
		}
	}
	if len(odd) > 0 {
		b = append(b, strings.Join(odd, "\n")+"\n"...)
	}
	return b, nil
}

// PortCounters are the counters of a port in JSON.
type PortCounters struct {
	Device   string                            `json:"device"`
	Port     int                               `json:"port"`
	Source   string                            `json:"source"`   // where they come from
	Counters map[string]snapshot.Value[uint64] `json:"counters"` // under perfquery's names; data in words of 4 bytes
}

// PerfCounters is PerfQuery as data.
func PerfCounters(s *snapshot.Snapshot, device string, number int) (PortCounters, error) {
	d, q, err := perfPort(s, device, number)
	if err != nil {
		return PortCounters{}, err
	}
	doc := PortCounters{Device: d.Name, Port: q.Number, Source: "sysfs counters/", Counters: map[string]snapshot.Value[uint64]{}}
	for _, f := range perfFields {
		if v := q.Counters.Get(f.file); !v.IsZero() {
			doc.Counters[f.name] = v
		}
	}
	return doc, nil
}

// dotted is a name, a colon, and points up to the 33rd column.
func dotted(b []byte, name, value string) []byte {
	return append(append(append(append(b, name...), ':'), strings.Repeat(".", max(0, 32-len(name)))...), value+"\n"...)
}

func perfPort(s *snapshot.Snapshot, device string, number int) (*snapshot.Device, *snapshot.Port, error) {
	if device != "" {
		d := s.Device(device)
		if d == nil {
			return nil, nil, fail(255, "no device %s; verbena devices lists them", device)
		}
		if number == 0 && len(d.Ports) > 0 {
			number = d.Ports[0].Number
		}
		if q := port(d, number); q != nil {
			return d, q, nil
		}
		return nil, nil, fail(255, "%s has no port %d", device, number)
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		for j := range d.Ports {
			q := &d.Ports[j]
			if q.State.Or(0) == 4 && (number == 0 || q.Number == number) {
				return d, q, nil
			}
		}
	}
	if len(s.Devices) == 0 {
		return nil, nil, fail(255, "there is no RDMA device here")
	}
	return nil, nil, fail(255, "no device has an active port; name one with -C")
}

// RoCEMode is cma_roce_mode, the version that the connection manager takes for a port.
func RoCEMode(s *snapshot.Snapshot, device string, number int) ([]byte, error) {
	d := s.Device(device)
	if d == nil {
		return nil, fail(1, "no device %s: cma_roce_mode -d DEVICE -p PORT", device)
	}
	q := port(d, number)
	if q == nil {
		return nil, fail(1, "%s has no port %d", device, number)
	}
	if mode, ok := q.CMRoCEMode.Get(); ok {
		return []byte(mode + "\n"), nil
	}
	why := "the connection manager has no entry for it in configfs, so the kernel's default holds: RoCE v2 where the port has it"
	if !q.CMRoCEMode.IsZero() {
		why = q.CMRoCEMode.Why()
	}
	return nil, fail(1, "%s port %d: %s", device, number, why)
}
