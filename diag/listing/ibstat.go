package listing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// IBStatOptions are those of ibstat.
type IBStatOptions struct {
	List   bool   // -l
	Short  bool   // -s
	GUIDs  bool   // -p
	Device string // empty for all
	Port   string // with a device; empty for all
}

// IBStat is ibstat. Its devices are in the order of their names.
func IBStat(s *snapshot.Snapshot, o IBStatOptions) ([]byte, error) {
	var devices []*snapshot.Device
	for i := range s.Devices {
		if d := &s.Devices[i]; !isIWARP(d) {
			devices = append(devices, d)
		}
	}
	slices.SortFunc(devices, func(a, b *snapshot.Device) int { return strings.Compare(a.Name, b.Name) })
	if o.Device != "" {
		d := s.Device(o.Device)
		if d == nil {
			return nil, fail(255, "'%s' IB device can't be found", o.Device)
		}
		if isIWARP(d) {
			return nil, fail(255, "'%s' is an iWARP device, and ibstat shows none: ibv_devinfo does", o.Device)
		}
		devices = []*snapshot.Device{d}
	}
	var b []byte
	for _, d := range devices {
		switch {
		case o.GUIDs:
			for i := range d.Ports {
				if guid := portGUID(&d.Ports[i]); guid != bareGUID("") {
					b = fmt.Appendf(b, "0x%s\n", guid)
				}
			}
		case o.List:
			b = fmt.Appendf(b, "%s\n", d.Name)
		case o.Port != "" && !o.Short:
			var err error
			if b, err = onePort(b, d, o.Port); err != nil {
				return b, err
			}
		default:
			b = ibstatDevice(b, d, o.Short)
		}
	}
	return b, nil
}

// isIWARP reports whether a device is an RNIC, which ibstat leaves out.
func isIWARP(d *snapshot.Device) bool { return d.NodeType.Or(1) > 3 }

// onePort is ibstat with a device and a port.
func onePort(b []byte, d *snapshot.Device, text string) ([]byte, error) {
	n := leadingNumber(text)
	if n < 0 { // stands for all in the original
		return ibstatDevice(b, d, false), nil
	}
	q := port(d, n)
	if q == nil {
		return b, fail(255, "'%s' has no port number %s - max (%d)", d.Name, text, len(d.Ports))
	}
	return ibstatPort(fmt.Appendf(b, "CA: '%s'\n", d.Name), q, ""), nil
}

// leadingNumber is what strtol with base 0 makes of a text: 0 of none.
func leadingNumber(s string) int {
	for n := len(s); n > 0; n-- {
		if v, err := strconv.ParseInt(s[:n], 0, 32); err == nil && !strings.Contains(s[:n], "_") {
			return int(v)
		}
	}
	return 0
}

func ibstatDevice(b []byte, d *snapshot.Device, short bool) []byte {
	kind := statTypes[max(1, min(d.NodeType.Or(1), len(statTypes)-1))]
	b = fmt.Appendf(b, "%s '%s'\n\t%s type: %s\n\tNumber of ports: %d\n\tFirmware version: %s\n\tHardware version: %s\n\tNode GUID: 0x%s\n\tSystem image GUID: 0x%s\n",
		kind, d.Name, kind, cut(d.HCAType, 39), len(d.Ports), cut(d.Firmware, 19), cut(d.HWRev, 19), bareGUID(d.NodeGUID.Or("")), bareGUID(d.SysImageGUID.Or("")))
	if short {
		return b
	}
	for i := range d.Ports {
		b = ibstatPort(b, &d.Ports[i], "\t")
	}
	return b
}

// cut is a word as long as the original has room for.
func cut(v snapshot.Value[string], n int) string {
	s := v.Or("")
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}

var (
	statTypes  = []string{"", "CA", "Switch", "Router"}
	statStates = []string{"???", "Down", "Initializing", "Armed", "Active"}
	statPhys   = []string{"No state change", "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "PhyTest"}
)

func ibstatPort(b []byte, q *snapshot.Port, indent string) []byte {
	in := indent
	if indent != "" {
		in += "\t"
	}
	state := statStates[0]
	if i := q.State.Or(0); i > 0 && i < len(statStates) {
		state = statStates[i]
	}
	phys := "???"
	if i := q.PhysState.Or(0); i >= 0 && i < len(statPhys) {
		phys = statPhys[i]
	}
	linkLayer := "IB" // without a word for it
	if q.LinkLayer.IsKnown() {
		linkLayer = cut(q.LinkLayer, 19)
	}
	b = fmt.Appendf(b, "%sPort %d:\n", indent, q.Number)
	for _, l := range [][2]string{
		{"State", state},
		{"Physical state", phys},
		{"Rate", statRate(q)},
		{"Base lid", strconv.Itoa(q.LID.Or(0))},
		{"LMC", strconv.Itoa(q.LMC.Or(0))},
		{"SM lid", strconv.Itoa(q.SMLID.Or(0))},
		{"Capability mask", fmt.Sprintf("0x%08x", q.CapMask.Or(0))},
		{"Port GUID", "0x" + portGUID(q)},
		{"Link layer", linkLayer},
	} {
		b = fmt.Appendf(b, "%s%s: %s\n", in, l[0], l[1])
	}
	return b
}

// statRate is the whole number of Gb/s, 2.5 for the lowest rate.
func statRate(q *snapshot.Port) string {
	rate := q.Rate.Or("")
	whole := q.RateMbps.Or(0) / 1000
	text := strconv.FormatInt(whole, 10)
	if whole == 2 {
		text = "2.5"
	}
	if strings.Contains(rate, "FDR10") {
		text += " (FDR10)"
	}
	return text
}

// portGUID is the lower half of the first GID; zeros if the slot is empty.
func portGUID(q *snapshot.Port) string {
	if len(q.GIDs) > 0 && q.GIDs[0].Index == 0 && len(q.GIDs[0].GID) == 39 {
		return bareGUID(q.GIDs[0].GID[20:])
	}
	return bareGUID("")
}
