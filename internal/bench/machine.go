package bench

import (
	"os"
	"runtime"
	"strings"
	"time"
)

// Machine is where a run was made. Empty fields could not be found out.
type Machine struct {
	Time       string `json:"time"`
	OS         string `json:"os"`
	Kernel     string `json:"kernel,omitempty"`
	CPU        string `json:"cpu,omitempty"`
	CPUs       int    `json:"cpus"`
	Go         string `json:"go"`
	Iperf      string `json:"iperf3,omitempty"`
	LoadBefore string `json:"load_before,omitempty"` // averages over 1, 5 and 15 minutes
	LoadAfter  string `json:"load_after,omitempty"`
}

func describe() Machine {
	return Machine{
		Time: time.Now().UTC().Format(time.RFC3339), OS: runtime.GOOS + "/" + runtime.GOARCH,
		Kernel: firstLine("/proc/sys/kernel/osrelease"), CPU: cpuModel(), CPUs: runtime.NumCPU(),
		Go: runtime.Version(), Iperf: iperfVersion(), LoadBefore: load(),
	}
}

func firstLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// load returns the load averages.
func load() string {
	f := strings.Fields(firstLine("/proc/loadavg"))
	if len(f) < 3 {
		return ""
	}
	return strings.Join(f[:3], " ")
}
