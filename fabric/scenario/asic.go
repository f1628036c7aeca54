package scenario

import (
	"fmt"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// ASIC is the packet memory of a switch chip.
type ASIC struct {
	Name   string
	Total  Bytes  // what the chip can give to packets
	Cell   Bytes  // unit of allocation
	Source string // where the numbers are from
}

// ASICs returns the presets of buffers, in the order of the documentation. The
// slice is the caller's.
//
// Total is cells × cell size where the vendor's SDK gives both. Of the Spectrum
// chips it is the largest pool that SONiC's platform files give, because the
// rest of the memory is held back by the SDK.
func ASICs() []ASIC {
	const sdk = "Broadcom SDK, MMU header: "
	return []ASIC{
		{"trident2", 61440 * 208, 208, "Broadcom CDK, bcm56850: 61,440 cells of 208 B (12 MB)"},
		{"trident3", 129024 * 256, 256, sdk + "129,024 cells of 256 B (32 MB)"},
		{"tomahawk", 4 * 20165 * 208, 208, sdk + "4 × 20,165 cells of 208 B (16 MB)"},
		{"tomahawk-plus", 4 * 27727 * 208, 208, sdk + "4 × 27,727 cells of 208 B (22 MB)"},
		{"tomahawk2", 4 * 53248 * 208, 208, sdk + "4 × 53,248 cells of 208 B (42 MB)"},
		{"tomahawk3", 2 * 134169 * 254, 254, sdk + "2 × 134,169 cells of 254 B (64 MB)"},
		{"tomahawk5", 167546528, 254, "SONiC device/arista 7060X6-64PE: static_th of the lossless pool; cell of 254 B"},
		{"spectrum", 16777152, 96, "SONiC buffer migrator, spc1 egress_lossless_pool; cell of 96 B (16 MB)"},
		{"spectrum2", 35966016, 144, "SONiC buffer migrator, spc2 egress_lossless_pool; cell of 144 B (of 42 MB)"},
		{"spectrum3", 60817392, 144, "SONiC device/mellanox MSN4700, egress_lossless_pool; cell of 144 B (of 64 MB)"},
		{"spectrum4", 158229504, 192, "SONiC device/nvidia SN5600, egress_lossless_pool; cell of 192 B (of 160 MB)"},
	}
}

// hpccPreset is the buffer of SIGCOMM'19 HPCC's simulator.
const hpccPreset = "hpcc"

// perRate stands for a total that follows from the topology's rate.
const perRate Bytes = -1

// hpccBuffer is 16 MiB for each 50 Gb/s of the hosts' rate.
func hpccBuffer(rate sim.Rate) Bytes { return Bytes(rate/sim.Mbps) * (16 << 20) / 50_000 }

// applyPreset sets total and cell to a chip's, or all to those of HPCC's simulator.
func (b *Buffer) applyPreset(name string) error {
	if name == "" {
		return nil
	}
	var names []string
	for _, a := range ASICs() {
		if a.Name == name {
			b.Preset, b.Total, b.Cell = name, a.Total, a.Cell
			return nil
		}
		names = append(names, a.Name)
	}
	if name == hpccPreset {
		*b = Buffer{
			Preset: name, Total: perRate, Cell: 1, Reserved: 4 << 10, Alpha: One / 8, ScaleAlpha: true,
			LossyAlpha: One / 8, Headroom: Headroom{Rule: HeadroomHPCC}, XONOffset: 3 << 10,
		}
		return nil
	}
	return presetError(name, append(names, hpccPreset))
}

func presetError(name string, names []string) error {
	if near := nearest(name, names); near != "" {
		return fmt.Errorf("unknown preset %q; did you mean %s?", clip(name), near)
	}
	return fmt.Errorf("unknown preset %q; give %s", clip(name), strings.Join(names, ", "))
}
