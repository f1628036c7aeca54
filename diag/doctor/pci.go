package doctor

import (
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// pciRate is what the PCI link of a device carries in Mb/s: transfers a second and
// lane, less the encoding (8b/10b up to 5 GT/s, 128b/130b above, PCIe 6 none), less
// 1.5 % for the headers of full packets.
func pciRate(d *snapshot.Device) reading {
	if d == nil || d.PCI == nil {
		return none("", "no PCI device behind it, or not recorded")
	}
	place := devicePath(d, "device/current_link_speed")
	speed, ok := d.PCI.LinkSpeed.Get()
	if !ok {
		return none(place, "%s", d.PCI.LinkSpeed.Why())
	}
	width, ok := d.PCI.LinkWidth.Get()
	if !ok {
		return none(devicePath(d, "device/current_link_width"), "%s", d.PCI.LinkWidth.Why())
	}
	gt, err := strconv.ParseFloat(strings.Fields(speed + " ")[0], 64)
	if err != nil || gt <= 0 || width <= 0 {
		return none(place, "%q at %d lanes is no PCI link", speed, width)
	}
	share := 128.0 / 130
	if gt <= 5 {
		share = 0.8
	}
	return is(gt*1000*float64(width)*share*0.985, place)
}
