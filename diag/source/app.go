package source

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// environment are the beginnings of the names of variables that steer RDMA; no others
// are read out of a process.
var environment = []string{"NCCL_", "UCX_", "RDMAV_", "IBV_", "MLX5_", "MLX4_", "OMPI_MCA_", "FI_", "RCCL_", "GLOO_", "MV2_", "VERBENA_"}

// app answers QueryApp: limits, privileges and environment of a process.
func (l *Live) app() (any, error) {
	cfg := l.cfg.App
	if cfg.PID == 0 && cfg.Name == "" && cfg.Log == nil {
		return nil, ErrNoEntry
	}
	app := snapshot.App{Log: cfg.Log}
	pid := cfg.PID
	if pid == 0 && cfg.Name != "" {
		var err error
		if pid, err = l.byName(cfg.Name); err != nil {
			return nil, err
		}
	}
	if pid == 0 {
		return app, nil
	}
	if pid < 0 {
		return nil, failureOf(fmt.Sprintf("process %d: not a number of a process", pid))
	}
	dir := strconv.Itoa(pid) + "/"
	status, err := l.proc.readFile(dir+"status", MaxFile)
	if err != nil {
		if errors.Is(err, ErrNoEntry) {
			return nil, failureOf(fmt.Sprintf("there is no process %d", pid))
		}
		return nil, err
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
	if err == nil {
		app.Env = variables(env)
	} else {
		app.EnvUnreadable = unreadable[string](err).Why()
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

// byName returns the first process of a name; the kernel cuts names at 15 bytes.
func (l *Live) byName(name string) (int, error) {
	if len(name) > 15 {
		name = name[:15]
	}
	entries, err := l.proc.readDir(".")
	if err != nil {
		return 0, err
	}
	best := 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid <= 0 {
			continue
		}
		b, err := l.proc.readFile(e.Name()+"/comm", maxLink)
		if err == nil && strings.TrimSuffix(string(b), "\n") == name && (best == 0 || pid < best) {
			best = pid
		}
	}
	if best == 0 {
		return 0, failureOf(fmt.Sprintf("there is no process named %.40q", name))
	}
	return best, nil
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
				all[name] = value
			}
		}
	}
	return all
}
