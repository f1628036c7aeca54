package judge

import (
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/verbena-rdma/verbena/test/interop/guest"
)

// All returns every judge, in the order of the report.
func All() []Judge {
	return []Judge{
		{"rxe", "Linux' rdma_rxe in a guest: wire formats, transports, connection manager", guest.Available},
		{"rxe-backports", "the same of Debian's backported kernel: FLUSH and ATOMIC WRITE", func() error { return guest.AvailableWith(guest.Backports) }},
		{"perftest", "Debian's perftest programs", programs("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_write_lat")},
		{"rdma-core", "Debian's ibverbs-utils and rdmacm-utils, and a program of ours on its libibverbs", rdmaCore},
		{"infiniband-diags", "Debian's ibstat, on trees of sysfs of hosts that are not here", programs("ibstat", "unshare")},
		{"tshark", "Wireshark's dissectors: everything that we send", programs("tshark")},
		{"tcpdump", "recordings from a kernel that is not ours", programs("tcpdump")},
		{"chromium", "a browser: the page of verbena monitor", programs("chromium")},
		{"arm64", "another processor's instructions, by Debian's qemu-user: simulated runs to the byte", programs("qemu-aarch64")},
	}
}

// Lookup returns the judge of that name.
func Lookup(name string) (Judge, bool) {
	all := All()
	i := slices.IndexFunc(all, func(j Judge) bool { return j.Name == name })
	if i < 0 {
		return Judge{}, false
	}
	return all[i], true
}

// rdmaCore finds the programs, and what the tests need to compile one more (test/interop/peer).
func rdmaCore() error {
	if err := programs("ibv_rc_pingpong", "ibv_devinfo", "rping", "ucmatose", "cc")(); err != nil {
		return err
	}
	if _, err := os.Stat("/usr/include/infiniband/verbs.h"); err != nil {
		return fmt.Errorf("%w (scripts/judges.sh installs it)", err)
	}
	return nil
}

// programs is a Find for judges that are programs on the host's PATH.
func programs(names ...string) func() error {
	return func() error {
		for _, name := range names {
			if _, err := exec.LookPath(name); err != nil {
				return fmt.Errorf("%w (scripts/judges.sh installs it)", err)
			}
		}
		return nil
	}
}
