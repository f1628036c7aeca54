package scenario

// finish fills in what follows from other keys and checks what single keys do
// not show.
func (s *Scenario) finish() error {
	return nil
}
