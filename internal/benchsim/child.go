package benchsim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
)

// The environment of a child: the case that it runs, and where it writes a
// profile of its processor time, and of what it allocated (name.mem).
const (
	caseEnv    = "VERBENA_BENCHSIM_CASE"
	profileEnv = "VERBENA_BENCHSIM_PROFILE"
)

// IsChild reports whether this process was started to run one case.
func IsChild() bool { return os.Getenv(caseEnv) != "" }

// Child is the main function of such a process: it runs the case and writes its
// figures to out.
func Child(out io.Writer) error {
	runtime.GOMAXPROCS(1)
	name := os.Getenv(caseEnv)
	stop, err := profile(os.Getenv(profileEnv), name)
	if err != nil {
		return err
	}
	f, err := Measure(name)
	if err := stop(); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(f)
}

// profile begins to write profiles to prefix.name.cpu and prefix.name.mem.
func profile(prefix, name string) (stop func() error, err error) {
	if prefix == "" {
		return func() error { return nil }, nil
	}
	runtime.MemProfileRate = 4096
	cpu, err := os.Create(prefix + "." + name + ".cpu")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		if err := cpu.Close(); err != nil {
			return err
		}
		m, err := os.Create(prefix + "." + name + ".mem")
		if err != nil {
			return err
		}
		defer m.Close()
		return pprof.Lookup("allocs").WriteTo(m, 0)
	}, nil
}

// spawn runs a case in a process of its own.
func spawn(ctx context.Context, name string) (*Figures, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), caseEnv+"="+name)
	var out, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &wrong
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(wrong.String()))
	}
	f := new(Figures)
	if err := json.Unmarshal(out.Bytes(), f); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// peakRSS returns the most memory that this process has had resident, or 0.
// It is that of the program alone: what getrusage says begins with the parent's.
func peakRSS() uint64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kb << 10
		}
	}
	return 0
}
