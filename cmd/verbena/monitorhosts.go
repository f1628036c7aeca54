package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/verbena-rdma/verbena/diag/monitor"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// liveHost is this host: counters at every look, all of it for the doctor.
func liveHost(live *source.Live, exclude []string) monitor.Host {
	counters := read.Options{Exclude: exclude, NoResources: true, NoSystem: true, NoApp: true, Counters: true}
	return monitor.Host{
		Name: "this host",
		Look: func() *snapshot.Snapshot { return read.Host(live, counters) },
		Full: func() *snapshot.Snapshot { return read.Host(live, read.Options{Exclude: exclude, NoApp: true}) },
	}
}

// recorded is a recording of the page and where it was found.
type recorded struct {
	rec  *source.Recording
	path string
}

type recordings []recorded

func (all recordings) close() {
	for _, r := range all {
		r.rec.Close()
	}
}

// recordings opens what paths name, at most so many. A recording that is named has to be
// right; one that was only found in a directory is left out with a line that says so.
func (a app) recordings(paths []string, most int) (all recordings, err error) {
	defer func() {
		if err != nil {
			all.close()
			all = nil
		}
	}()
	var found []string
	named := map[string]bool{}
	for _, p := range paths {
		here, err := source.Find(p, monitor.MaxHosts)
		if err != nil {
			return all, err
		}
		if len(here) == 1 {
			named[here[0]] = true
		}
		found = append(found, here...)
	}
	if len(found) > most {
		return all, fmt.Errorf("%d recordings%s, the limit of one page is %d hosts", len(found), map[bool]string{true: " and this host"}[most < monitor.MaxHosts], monitor.MaxHosts)
	}
	for _, p := range found {
		rec, err := source.Open(p)
		switch {
		case err != nil && named[p]:
			return all, err
		case err != nil:
			a.note(err.Error() + "; it is left out")
			continue
		}
		all = append(all, recorded{rec, p})
	}
	if len(all) == 0 && len(found) > 0 {
		return all, fmt.Errorf("none of the %d recordings can be read", len(found))
	}
	return all, nil
}

// hosts are the recordings as hosts of the page, each under a name of its own: that of
// the host, with where the recording is if there are several of it.
func (all recordings) hosts(others []monitor.Host) []monitor.Host {
	taken, times := map[string]bool{}, map[string]int{}
	for _, h := range others {
		taken[h.Name] = true
		times[h.Name]++
	}
	for _, r := range all {
		times[r.host()]++
	}
	var hosts []monitor.Host
	for _, r := range all {
		name := r.host()
		if times[name] > 1 {
			if place := plainName(filepath.Base(filepath.Clean(r.path))); place != name {
				name += " · " + place
			} else {
				name += " · " + plainName(filepath.Dir(filepath.Clean(r.path)))
			}
		}
		base := name
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s (%d)", base, n)
		}
		taken[name] = true
		hosts = append(hosts, monitor.Host{
			Name: name, Times: r.rec.Times(),
			Past: func(i int) *snapshot.Snapshot { return read.Host(r.rec.At(i), read.Options{}) },
		})
	}
	return hosts
}

// host is the name of the host that was recorded, or of where it is.
func (r recorded) host() string {
	if name := plainName(r.rec.Meta().Host); name != "" {
		return name
	}
	if name := plainName(strings.TrimSuffix(filepath.Base(filepath.Clean(r.path)), ".txtar")); name != "" {
		return name
	}
	return "recording"
}

// maxHostName is how many characters of a name are shown.
const maxHostName = 64

// plainName is a name that may be anybody's words, as one short line.
func plainName(s string) string {
	r := []rune(strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }), " "))
	if len(r) > maxHostName {
		r = append(r[:maxHostName-1], '…')
	}
	return string(r)
}
