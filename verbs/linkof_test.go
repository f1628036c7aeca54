package verbs

import (
	"net"
	"testing"
)

// What is asked of one interface is what the list of all has, and the speed what sysfs
// has, also with a socket that is closed or that there never was.
func TestLinkOfIsTheListed(t *testing.T) {
	all, err := net.Interfaces()
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	open, closed := openIfSocket(), openIfSocket()
	defer open.close()
	closed.close()
	for _, s := range []*ifSocket{open, closed, nil} {
		for _, i := range all {
			want := linkState{i.MTU, i.Flags&net.FlagUp != 0 && i.Flags&net.FlagRunning != 0, speedMbps(i.Name)}
			if l, ok := s.linkOf(i.Name); !ok || l != want {
				t.Errorf("%s: %+v, %v; the list and sysfs have %+v", i.Name, l, ok, want)
			}
		}
		for _, name := range []string{"", "none", "a name that is longer than any interface's"} {
			if _, ok := s.linkOf(name); ok {
				t.Errorf("there is an interface %q", name)
			}
		}
	}
}
