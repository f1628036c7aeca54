package source

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// An environment that cannot be read is not an empty one.
func TestEnvironmentThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		make func(string) error
		why  string
	}{
		"none set": {func(p string) error { return os.WriteFile(p, []byte("HOME=/\x00"), 0o600) }, ""},
		"odd":      {func(p string) error { return os.Mkdir(p, 0o700) }, "EISDIR"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "77")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "status"), []byte("Name:\tjob\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.make(filepath.Join(dir, "environ")); err != nil {
				t.Fatal(err)
			}
			l, err := NewLive(LiveConfig{SysfsRoot: root, ProcRoot: root, App: AppConfig{PID: 77}})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			b, err := l.Ask(QueryApp)
			if err != nil {
				t.Fatal(err)
			}
			var app snapshot.App
			if err := json.Unmarshal(b, &app); err != nil {
				t.Fatal(err)
			}
			if app.EnvUnreadable != c.why || len(app.Env) != 0 {
				t.Errorf("%q, %v; want %q", app.EnvUnreadable, app.Env, c.why)
			}
		})
	}
}

// processesOf makes a proc with processes of one name and asks for the program.
func processesOf(t *testing.T, pids []int, environ string, cfg AppConfig) (snapshot.App, error) {
	t.Helper()
	root := t.TempDir()
	for _, pid := range pids {
		dir := filepath.Join(root, fmt.Sprint(pid))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"comm": "rank\n", "status": "Name:\trank\nCpus_allowed_list:\t" + fmt.Sprint(pid) + "\n", "environ": environ,
			"limits": fmt.Sprintf("Max locked memory         %d              %d              bytes\n", pid*1024, pid*2048),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	l, err := NewLive(LiveConfig{SysfsRoot: root, ProcRoot: root, App: cfg})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b, err := l.Ask(QueryApp)
	if err != nil {
		return snapshot.App{}, err
	}
	var app snapshot.App
	return app, json.Unmarshal(b, &app)
}

// All processes of a name are the program, each with its own limits; 64 at most.
func TestProcessesOfAName(t *testing.T) {
	app, err := processesOf(t, []int{300, 20, 1000}, "", AppConfig{Name: "rank", Log: []string{"a line"}})
	if err != nil || app.Matching != 3 || len(app.Others) != 2 || app.PID.Or(0) != 20 || app.Others[0].PID.Or(0) != 300 || app.Others[1].PID.Or(0) != 1000 {
		t.Fatalf("%+v, %v", app, err)
	}
	if app.Memlock.Or(0) != 20*1024 || app.Others[1].Memlock.Or(0) != 1000*1024 || app.Others[0].CPUs.Or("") != "300" || len(app.Log) != 1 || app.Others[0].Log != nil {
		t.Errorf("%+v", app)
	}
	if app, err = processesOf(t, []int{7}, "", AppConfig{Name: "rank"}); err != nil || app.Matching != 0 || app.Others != nil {
		t.Errorf("one process: %+v, %v", app, err)
	}
	var many []int
	for i := range MaxProcesses + 36 {
		many = append(many, i+1)
	}
	if app, err = processesOf(t, many, "", AppConfig{Name: "rank"}); err != nil || app.Matching != 100 || len(app.Others) != MaxProcesses-1 {
		t.Errorf("100 processes: %d, %d others, %v", app.Matching, len(app.Others), err)
	}
	// Environments are bounded, each and in all; what does not fit is not empty.
	long := strings.Repeat("NCCL_A=1\x00", 1) + "UCX_B=" + strings.Repeat("x", 100_000) + "\x00"
	for i := range 100 {
		long += fmt.Sprintf("OMPI_MCA_%d=%s\x00", i, strings.Repeat("y", 1000))
	}
	app, err = processesOf(t, many, long, AppConfig{Name: "rank"})
	if err != nil || app.Env["NCCL_A"] != "1" || len(app.Env["UCX_B"]) != maxVariable {
		t.Errorf("%v, %d bytes", err, len(app.Env["UCX_B"]))
	}
	last := app.Others[len(app.Others)-1]
	if last.Env != nil || !strings.Contains(last.EnvUnreadable, "longer than the limit") {
		t.Errorf("the last process: %d variables, %q", len(last.Env), last.EnvUnreadable)
	}
	for _, c := range []struct {
		cfg  AppConfig
		want string
	}{
		{AppConfig{Name: "none"}, `there is no process named "none"`}, {AppConfig{PID: 8}, "there is no process 8"}, {AppConfig{PID: -1}, "process -1: not a number of a process"},
	} {
		if _, err := processesOf(t, []int{7}, "", c.cfg); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
	}
}
