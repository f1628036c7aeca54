package source

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// environment are the beginnings of the names of variables that steer RDMA; no others
// are read out of a process.
var environment = []string{"NCCL_", "UCX_", "RDMAV_", "IBV_", "MLX5_", "MLX4_", "OMPI_MCA_", "FI_", "RCCL_", "GLOO_", "MV2_", "VERBENA_"}

// MaxProcesses is how many processes of one name are looked at.
const MaxProcesses = 64

// Bounds of the environments of all of them, in bytes: of one variable and in all.
const (
	maxVariable    = 4 << 10
	maxEnvironment = 1 << 20
)

// Processes are the numbers of the processes that the configuration names, lowest
// first, at most [MaxProcesses]; matching is how many there are. None, where it names
// none. The error says that there is no such process.
func (l *Live) Processes() (pids []int, matching int, err error) {
	switch cfg := l.cfg.App; {
	case cfg.PID < 0:
		return nil, 0, failureOf(fmt.Sprintf("process %d: not a number of a process", cfg.PID))
	case cfg.PID > 0:
		if _, err := l.proc.readFile(strconv.Itoa(cfg.PID)+"/status", MaxFile); errors.Is(err, ErrNoEntry) {
			return nil, 0, l.noProcess(fmt.Sprintf("process %d", cfg.PID))
		}
		return []int{cfg.PID}, 1, nil
	case cfg.Name != "":
		pids, err := l.byName(cfg.Name)
		return pids[:min(len(pids), MaxProcesses)], len(pids), err
	}
	return nil, 0, nil
}

// app answers QueryApp: limits, privileges and environment of the program's processes.
func (l *Live) app() (any, error) {
	cfg := l.cfg.App
	if cfg.PID == 0 && cfg.Name == "" && cfg.Log == nil {
		return nil, ErrNoEntry
	}
	pids, matching, err := l.Processes()
	if err != nil {
		return nil, err
	}
	var all []snapshot.App
	left := maxEnvironment
	for _, pid := range pids {
		one, err := l.process(pid, &left)
		switch {
		case err == nil:
			all = append(all, one)
		case len(pids) > 1: // it has ended meanwhile
			matching--
		case errors.Is(err, ErrNoEntry):
			return nil, l.noProcess(fmt.Sprintf("process %d", pid))
		default:
			return nil, err
		}
	}
	if len(all) == 0 {
		return snapshot.App{Log: cfg.Log}, nil
	}
	app := all[0]
	app.Log = cfg.Log
	if matching > 1 {
		app.Others, app.Matching = all[1:], matching
	}
	return app, nil
}

// process reads one process; left is what environments may still take.
func (l *Live) process(pid int, left *int) (snapshot.App, error) {
	var app snapshot.App
	dir := strconv.Itoa(pid) + "/"
	status, err := l.proc.readFile(dir+"status", MaxFile)
	if err != nil {
		return app, err
	}
	app.PID = snapshot.Known(pid)
	appStatus(&app, status)
	app.Memlock, app.MemlockHard = l.limit(dir, "Max locked memory")
	app.OpenFiles, _ = l.limit(dir, "Max open files")
	app.ShellLimit, _ = l.limit("self/", "Max locked memory")
	if b, err := l.proc.readFile(dir+"cgroup", MaxFile); err == nil {
		line, _, _ := strings.Cut(string(b), "\n")
		app.Cgroup = snapshot.Known(line)
	} else {
		app.Cgroup = unreadable[string](err)
	}
	env, err := l.proc.readFile(dir+"environ", MaxFile)
	if err != nil {
		app.EnvUnreadable = unreadable[string](err).Why()
		return app, nil
	}
	app.Env = variables(env)
	for name, value := range app.Env {
		*left -= len(name) + len(value)
	}
	if *left < 0 {
		app.Env, app.EnvUnreadable = nil, fmt.Sprintf("the variables of all processes of the name are longer than the limit of %d bytes", maxEnvironment)
	}
	return app, nil
}

// unreadable is the value of a failure.
func unreadable[T any](err error) snapshot.Value[T] {
	if errors.Is(err, ErrNoEntry) {
		return snapshot.Value[T]{}
	}
	if errors.Is(Failed(err), fs.ErrPermission) {
		return snapshot.Unreadable[T]("permission denied")
	}
	return snapshot.Unreadable[T](Failed(err).Error())
}

// byName returns the processes of a name, lowest first; the kernel cuts names at 15
// bytes.
func (l *Live) byName(name string) ([]int, error) {
	if len(name) > 15 {
		name = name[:15]
	}
	entries, err := l.proc.readDir(".")
	if err != nil {
		return nil, err
	}
	var all []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid <= 0 {
			continue
		}
		b, err := l.proc.readFile(e.Name()+"/comm", maxLink)
		if err == nil && strings.TrimSuffix(string(b), "\n") == name {
			all = append(all, pid)
		}
	}
	if len(all) == 0 {
		return nil, l.noProcess(fmt.Sprintf("process named %.40q", name))
	}
	slices.Sort(all)
	return all, nil
}

// noProcess says that there is no process, or that nobody can know: where proc hides the
// processes of others, not even the first one is there.
func (l *Live) noProcess(which string) Failure {
	if !l.proc.has("1") && l.proc.has("self") {
		return failureOf("there is no " + which + " that is ours to see: proc hides the processes of others (hidepid)")
	}
	return failureOf("there is no " + which)
}

// appStatus reads the lines of /proc/<pid>/status that matter.
func appStatus(app *snapshot.App, b []byte) {
	for line := range strings.Lines(string(b)) {
		key, rest, ok := strings.Cut(line, ":")
		rest = strings.TrimSpace(rest)
		if !ok {
			continue
		}
		switch key {
		case "Name":
			app.Comm = snapshot.Known(rest)
		case "Uid":
			if f := strings.Fields(rest); len(f) > 1 {
				if n, err := strconv.Atoi(f[1]); err == nil { // effective
					app.UID = snapshot.Known(n)
				}
			}
		case "CapEff":
			if n, err := strconv.ParseUint(rest, 16, 64); err == nil {
				app.CapEff = snapshot.Known(n)
			}
		case "VmLck", "VmPin":
			n, err := strconv.ParseUint(strings.TrimSuffix(rest, " kB"), 10, 64)
			if err != nil {
				continue
			}
			if key == "VmLck" {
				app.VmLckKB = snapshot.Known(n)
			} else {
				app.VmPinKB = snapshot.Known(n)
			}
		case "Cpus_allowed_list":
			app.CPUs = snapshot.Known(rest)
		}
	}
}

// limit reads a line of /proc/<pid>/limits: name, soft, hard, unit.
func (l *Live) limit(dir, name string) (soft, hard snapshot.Value[int64]) {
	b, err := l.proc.readFile(dir+"limits", MaxFile)
	if err != nil {
		v := unreadable[int64](err)
		return v, v
	}
	for line := range strings.Lines(string(b)) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok {
			continue
		}
		f := strings.Fields(rest)
		if len(f) >= 2 {
			return limitOf(f[0]), limitOf(f[1])
		}
	}
	return
}

func limitOf(word string) snapshot.Value[int64] {
	if word == "unlimited" {
		return snapshot.Known(int64(-1))
	}
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return snapshot.Unreadable[int64](fmt.Sprintf("%.40q is no limit", word))
	}
	return snapshot.Known(n)
}

// variables picks the variables that steer RDMA.
func variables(b []byte) map[string]string {
	all := map[string]string{}
	for _, v := range bytes.Split(b, []byte{0}) {
		name, value, ok := strings.Cut(string(v), "=")
		if !ok || len(all) >= 1000 {
			continue
		}
		for _, p := range environment {
			if strings.HasPrefix(name, p) {
				all[name] = strings.ToValidUTF8(value[:min(len(value), maxVariable)], "")
			}
		}
	}
	return all
}
