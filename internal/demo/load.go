package demo

import (
	"fmt"
	"os"
	"runtime"
)

// busy returns a sentence when other programs keep the processors of this host
// busy, as far as it tells; otherwise nothing.
func busy() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return busyAt(string(b), runtime.NumCPU())
}

func busyAt(loadavg string, cpus int) string {
	var load float64
	if _, err := fmt.Sscan(loadavg, &load); err != nil || load <= float64(cpus)/2 {
		return ""
	}
	return fmt.Sprintf("\n  This host is busy (load %.1f on %d processors): ends that spin share theirs, so the figures mean little.\n", load, cpus)
}
