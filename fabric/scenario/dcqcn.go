package scenario

import (
	"strings"

	"github.com/verbena-rdma/verbena/transport/dcqcn"
)

// PresetOff is the name of the preset without congestion control.
const PresetOff = "off"

// applyPreset puts a preset's values in place of all knobs.
func (d *DCQCN) applyPreset(name string) error {
	if name != PresetOff {
		if _, err := dcqcn.Preset(name); err != nil {
			return presetError(name, append(dcqcn.Presets(), PresetOff))
		}
	}
	d.Preset, d.Knobs = name, nil
	return nil
}

// Params returns the parameters: the preset with the knobs set. nil means off.
func (d *DCQCN) Params() (*dcqcn.Params, error) {
	if d.Off() {
		return nil, nil
	}
	p, err := dcqcn.Preset(d.Preset)
	if err != nil {
		return nil, err
	}
	for _, k := range d.Knobs {
		if knob, ok := dcqcn.FindKnob(k.Name); ok {
			if err := knob.Set(&p, k.Value); err != nil {
				return nil, err
			}
		}
	}
	if len(d.Knobs) > 0 {
		p.Name = d.Preset + "*"
	}
	return &p, p.Validate()
}

// checkDCQCN finds the knob that is wrong.
func (c *checks) checkDCQCN(d *DCQCN) {
	if d.Off() {
		return
	}
	p, err := dcqcn.Preset(d.Preset)
	if err != nil {
		c.fail("dcqcn.preset", "%s", presetError(d.Preset, append(dcqcn.Presets(), PresetOff)))
		return
	}
	for _, k := range d.Knobs {
		knob, ok := dcqcn.FindKnob(k.Name)
		if !ok {
			continue // refused when it was read
		}
		if err := knob.Set(&p, k.Value); err != nil {
			c.fail("dcqcn."+k.Name, "%s", strings.TrimPrefix(err.Error(), knob.Name+": "))
			return
		}
	}
	if err := p.Validate(); err != nil {
		c.fail("dcqcn", "%s", err)
	}
}

// knobNames lists the keys that DCQCN takes.
func knobNames() []string {
	var names []string
	for _, k := range dcqcn.Knobs() {
		names = append(names, k.Name)
		if k.Paper != "" {
			names = append(names, k.Paper)
		}
	}
	return names
}
