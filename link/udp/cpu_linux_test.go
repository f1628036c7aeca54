package udp_test

import "golang.org/x/sys/unix"

// processorTime returns this thread's processor time in ns.
func processorTime() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return ts.Nano()
}
