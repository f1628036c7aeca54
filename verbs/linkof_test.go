package verbs

import (
	"net"
	"testing"
)

// What is asked of one interface is what the list of all has.
func TestLinkOfIsTheListed(t *testing.T) {
	all, err := net.Interfaces()
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, i := range all {
		want := i.Flags&net.FlagUp != 0 && i.Flags&net.FlagRunning != 0
		if mtu, running, ok := linkOf(i.Name); !ok || mtu != i.MTU || running != want {
			t.Errorf("%s: MTU %d, running %v, %v; the list has %d, %v", i.Name, mtu, running, ok, i.MTU, want)
		}
	}
	for _, name := range []string{"", "none", "a name that is longer than any interface's"} {
		if _, _, ok := linkOf(name); ok {
			t.Errorf("there is an interface %q", name)
		}
	}
}
