package need

import "testing"

// note is a test that writes down how it is ended.
type note struct{ skipped, failed string }

func (*note) Helper()             {}
func (n *note) Skip(args ...any)  { n.skipped = args[0].(string) }
func (n *note) Fatal(args ...any) { n.failed = args[0].(string); panic(n) }

func TestMissing(t *testing.T) {
	var home note
	missing(&home, false, "no ip")
	if home != (note{skipped: "no ip"}) {
		t.Errorf("at home: %+v", home)
	}
	var ci note
	func() {
		defer func() { _ = recover() }()
		missing(&ci, true, "no ip")
	}()
	if ci != (note{failed: "nothing may be skipped in CI: no ip"}) {
		t.Errorf("in CI: %+v", ci)
	}
}
