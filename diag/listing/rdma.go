package listing

import (
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

const rdmaUsage = `Usage: rdma [ OPTIONS ] OBJECT { COMMAND | help }
       rdma [ -f[orce] ] -b[atch] filename
where  OBJECT := { dev | link | resource | system | statistic | help }
       OPTIONS := { -V[ersion] | -d[etails] | -j[son] | -p[retty] -r[aw]}
`

const (
	devUsage  = "Usage: rdma dev show [DEV]\n"
	linkUsage = "Usage: rdma link show [DEV/PORT_INDEX]\n"
	resUsage  = "Usage: rdma resource\n" +
		"          resource show [DEV]\n" +
		"          resource show [qp|cm_id|pd|mr|cq|ctx|srq]\n" +
		"          resource show qp|cm_id link [DEV/PORT] [FILTER-NAME FILTER-VALUE]\n" +
		"          resource show cq|pd|mr|ctx|srq dev [DEV] [FILTER-NAME FILTER-VALUE]\n"
	statUsage   = "Usage: rdma statistic show [ link [ DEV/PORT_INDEX ] ]\n       rdma statistic qp show\n       rdma statistic mode\n"
	systemUsage = "Usage: rdma system show [ netns ]\n"
)

// RDMA is the rdma tool: what it prints for a command line without the program's name.
// It shows; what changes something is refused. Objects and commands may be shortened
// as there.
func RDMA(s *snapshot.Snapshot, args []string) ([]byte, error) {
	f, jsonAlways, args, err := rdmaOptions(args)
	if err != nil || args == nil {
		return []byte(rdmaUsage), err
	}
	if len(args) == 1 && args[0] == versionWord {
		return []byte("rdma utility, iproute2-6.1.0\n"), nil
	}
	c := rdmaCommand{s: s, form: f, jsonAlways: jsonAlways}
	if len(args) == 0 {
		return []byte(rdmaUsage), nil
	}
	rest := args[1:]
	switch shortened(args[0], "dev", "link", "resource", "system", "statistic", "help") {
	case "dev":
		return c.object("dev", devUsage, rest, c.devs, []string{"set"})
	case "link":
		return c.object("link", linkUsage, rest, c.links, []string{"add", "delete"})
	case "resource":
		return c.object("resource", resUsage, rest, c.resources, nil)
	case "system":
		return c.object("system", systemUsage, rest, c.system, []string{"set"})
	case "statistic":
		return c.statistic(rest)
	case "help":
		return []byte(rdmaUsage), nil
	}
	return nil, fail(0, "Unknown object '%s'.", args[0])
}

// versionWord stands for -V among the arguments.
const versionWord = "\x00version"

// rdmaOptions takes the options before the object; nil arguments ask for the usage.
func rdmaOptions(args []string) (f form, jsonAlways bool, rest []string, err error) {
	rest = append([]string{}, args...)
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") && len(rest[0]) > 1 {
		o := rest[0]
		rest = rest[1:]
		letters, isLong := strings.CutPrefix(o, "--")
		if isLong {
			l, ok := map[string]string{"version": "V", "details": "d", "json": "J", "pretty": "p", "raw": "r", "force": "f", "help": "h"}[letters]
			if !ok {
				return f, false, rest, fail(1, "Unknown option.")
			}
			letters = l
		} else {
			letters = letters[1:]
		}
		for _, l := range letters {
			switch l {
			case 'd':
				f.details = true
			case 'J':
				f.json, jsonAlways = true, true
			case 'j':
				f.json = true
			case 'p':
				f.pretty = true
			case 'f':
			case 'V':
				return f, false, []string{versionWord}, nil
			case 'h':
				return f, false, nil, nil
			default:
				return f, false, rest, fail(1, "Unknown option.")
			}
		}
	}
	return f, jsonAlways, rest, nil
}

// shortened returns the first word that begins with s.
func shortened(s string, words ...string) string {
	for _, w := range words {
		if s != "" && strings.HasPrefix(w, s) {
			return w
		}
	}
	return ""
}

type rdmaCommand struct {
	s          *snapshot.Snapshot
	form       form
	jsonAlways bool // --json: also where the original has text only
}

// object carries out the commands that objects have in common.
func (c *rdmaCommand) object(name, usage string, args []string, show func([]string) ([]byte, error), changes []string) ([]byte, error) {
	if len(args) == 0 {
		return show(nil)
	}
	if cmd := shortened(args[0], append([]string{"show", "list", "help"}, changes...)...); cmd != "" {
		switch cmd {
		case "show", "list":
			return show(args[1:])
		case "help":
			return []byte(usage), nil
		}
		return nil, fail(1, "rdma %s %s changes the host: this program shows only", name, cmd)
	}
	return nil, fail(0, "Unknown %s command '%s'.", name, args[0])
}

// errorBeside prints an empty list in JSON, as the original does, beside an error.
func (c *rdmaCommand) errorBeside(err error) ([]byte, error) {
	if c.form.json {
		return c.form.print(nil), err
	}
	return nil, err
}

// devices returns the devices that an argument names, all for none.
func (c *rdmaCommand) device(args []string) (only *snapshot.Device, err error) {
	if len(args) == 0 {
		return nil, nil
	}
	if only = c.s.Device(args[0]); only == nil {
		return nil, fail(1, "Wrong device name - %s", args[0])
	}
	if len(args) > 1 {
		return nil, fail(0, "Unknown parameter '%s'.", args[1])
	}
	return only, nil
}

// link returns the device and port that DEV/PORT names; port -1 for all, which is
// allowed where the original does.
func (c *rdmaCommand) link(arg string, whole bool) (*snapshot.Device, int, error) {
	name, portText, has := strings.Cut(arg, "/")
	d := c.s.Device(name)
	if d == nil || !has && !whole {
		return nil, 0, fail(1, "Wrong device name")
	}
	if !has {
		return d, -1, nil
	}
	if portText == "-" && whole {
		return d, 0, nil
	}
	n, err := strconv.Atoi(portText)
	if err != nil || port(d, n) == nil {
		return nil, 0, fail(1, "Wrong device name")
	}
	return d, n, nil
}

func port(d *snapshot.Device, n int) *snapshot.Port {
	for i := range d.Ports {
		if d.Ports[i].Number == n {
			return &d.Ports[i]
		}
	}
	return nil
}

// index is the number of a device; those that the kernel does not know count on.
func (c *rdmaCommand) index(d *snapshot.Device) uint64 {
	if i, ok := d.Index.Get(); ok {
		return uint64(i)
	}
	next := 0
	for i := range c.s.Devices {
		e := &c.s.Devices[i]
		if n, ok := e.Index.Get(); ok {
			next = max(next, n+1)
		}
	}
	for i := range c.s.Devices {
		e := &c.s.Devices[i]
		if e == d {
			break
		}
		if !e.Index.IsKnown() {
			next++
		}
	}
	return uint64(next)
}
