package fault

// Check says what is wrong with a rule, as New would.
func (r *Rule) Check() error { return r.validate() }
