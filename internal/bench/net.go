package bench

import (
	"errors"
	"fmt"
	"os/exec"
)

// openLo starts two children on two addresses of the loopback interface.
func openLo(port int) (p *pair, err error) {
	p = &pair{network: "lo", port: port}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
			p = nil
		}
	}()
	if p.shared, err = sharedPage(); err != nil {
		return p, err
	}
	if p.near, err = startProc(p.shared, nil); err != nil {
		return p, err
	}
	if p.far, err = startProc(p.shared, nil); err != nil {
		return p, err
	}
	return p, p.hello("127.0.0.1", "127.0.0.2")
}

// vethMTU carries path MTU 4096.
const vethMTU = 9000

// openVeth starts two children, each in a network namespace of its own that
// goes with it, and joins them by a veth pair.
func openVeth(port int) (p *pair, err error) {
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, errors.New("the program ip is not installed")
	}
	p = &pair{network: "veth", port: port}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
			p = nil
		}
	}()
	if p.shared, err = sharedPage(); err != nil {
		return p, err
	}
	if p.near, err = startProc(p.shared, ownNetwork); err != nil {
		return p, err
	}
	if p.far, err = startProc(p.shared, ownNetwork); err != nil {
		return p, err
	}
	// The near child makes the pair and gives one end away: this process's own
	// network is not touched.
	steps := []struct {
		p    *proc
		args []string
	}{
		{p.near, []string{
			"ip", "link", "add", "vrb0", "mtu", fmt.Sprint(vethMTU), "type", "veth",
			"peer", "name", "vrb0", "mtu", fmt.Sprint(vethMTU), "netns", fmt.Sprint(p.far.cmd.Process.Pid),
		}},
		{p.near, []string{"ip", "addr", "add", "10.201.0.1/24", "dev", "vrb0"}},
		{p.far, []string{"ip", "addr", "add", "10.201.0.2/24", "dev", "vrb0"}},
		{p.near, []string{"ip", "link", "set", "vrb0", "up"}},
		{p.far, []string{"ip", "link", "set", "vrb0", "up"}},
		{p.near, []string{"ip", "link", "set", "lo", "up"}},
		{p.far, []string{"ip", "link", "set", "lo", "up"}},
	}
	for _, s := range steps {
		if _, err := s.p.ask(request{Do: "run", Args: s.args}); err != nil {
			return p, err
		}
	}
	return p, p.hello("10.201.0.1", "10.201.0.2")
}
