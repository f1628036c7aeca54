//go:build linux && (amd64 || arm64 || riscv64 || loong64 || ppc64le || s390x)

package iptables

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/internal/need"
	"github.com/verbena-rdma/verbena/test/interop/netns"
)

// version is iptables for one family.
type version struct {
	program, names string
	read           func([]byte) (string, error)
	rules          []string
}

var versions = []version{
	{"iptables-legacy", "ip_tables_names", Read, lines},
	{"ip6tables-legacy", "ip6_tables_names", ReadIPv6, lines6},
}

var lines6 = []string{
	"-N roce", "-N empty", "-P FORWARD DROP", "-P INPUT DROP",
	"-A INPUT -i lo -j ACCEPT",
	"-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT",
	"-A INPUT -s fd00::/8 ! -d 2001:db8::7 -p udp -m udp --sport 1024:65535 ! --dport 53 -j ACCEPT",
	"-A INPUT -s ::ffff:10.0.0.0/104 -j ACCEPT",
	"-A INPUT -i eth+ -p udp -m multiport --dports 53,4000:5000 -g roce",
	"-A INPUT ! -p ipv6-icmp",
	"-A INPUT -p sctp",
	"-A INPUT -p 200 -j ACCEPT",
	"-A roce -s fd00::1/ffff:0:ffff::ffff -j RETURN",
	"-A roce -p udp -m udp --dport 4791 -j DROP",
	"-A roce -j REJECT",
	"-A OUTPUT -o eth0 -j roce",
	"-A FORWARD ! -i eth1 -j empty",
}

// lines are rules as their maker writes them.
var lines = []string{
	"-N roce", "-N empty", "-P FORWARD DROP",
	"-A INPUT -i lo -j ACCEPT",
	"-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT",
	"-A INPUT -s 10.1.0.0/16 ! -d 10.2.3.4 -p udp -m udp --sport 1024:65535 ! --dport 53 -j ACCEPT",
	"-A INPUT -i eth+ -p udp -m multiport --dports 53,4000:5000 -g roce",
	"-A INPUT ! -p icmp",
	"-A roce -s 10.0.0.0/255.0.255.0 -j RETURN",
	"-A roce -p udp -m udp --dport 4791 -j DROP",
	"-A roce -j REJECT",
	"-A OUTPUT -o eth0 -j roce",
	"-A FORWARD ! -i eth1 -j empty",
}

// stateLines need connection tracking in the kernel.
var stateLines = []string{"-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", "-A INPUT -m conntrack ! --ctstate NEW -j DROP"}

// legacy runs iptables-legacy in a namespace with rules, and reads the table there. It
// returns its iptables-save too.
func legacy(t *testing.T, v version, rules []string) (ours, theirs string) {
	t.Helper()
	program, err := exec.LookPath(v.program)
	if err != nil {
		need.Missing(t, "no %s program (package iptables)", v.program)
	}
	run := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s %s: %w: %s", v.program, strings.Join(args, " "), err, out)
		}
		return string(out), err
	}
	var failed error
	space := netns.New(t)
	space.Do(func() {
		if _, err := run("-S"); err != nil { // a kernel without such tables says so, and so do we
			t.Logf("no table to compare: %v", err)
			names, _ := os.ReadFile("/proc/thread-self/net/" + v.names) // absent, as the tables are
			if _, err := v.read(names); !errors.Is(err, fs.ErrNotExist) {
				failed = fmt.Errorf("without a table: %w", err)
			}
			return
		}
		for _, l := range rules {
			if _, err := run(strings.Fields(l)...); err != nil {
				if strings.Contains(l, "conntrack") {
					continue
				}
				failed = err
				return
			}
		}
		out, err := exec.CommandContext(t.Context(), program+"-save", "-t", "filter").Output()
		if err != nil {
			failed = err
			return
		}
		theirs = string(out)
		names, err := os.ReadFile("/proc/thread-self/net/" + v.names)
		if err != nil {
			failed = err
			return
		}
		if ours, failed = v.read(names); failed == nil {
			if _, err := v.read(nil); !errors.Is(err, fs.ErrNotExist) {
				failed = fmt.Errorf("a table that is not listed: %w", err)
			}
		}
	})
	if failed != nil {
		t.Fatal(failed)
	}
	return ours, theirs
}

// TestTableAsIPTablesSavePrintsIt reads tables that Debian's iptables made and wants
// what its iptables-save prints of them.
func TestTableAsIPTablesSavePrintsIt(t *testing.T) {
	for _, v := range versions {
		for _, rules := range [][]string{nil, v.rules, append(slices.Clone(v.rules), stateLines...)} {
			ours, theirs := legacy(t, v, rules)
			theirs = regexp.MustCompile(`(?m)^#.*\n| --reject-with \S+`).ReplaceAllString(theirs, "")
			theirs = regexp.MustCompile(`\[\d+:\d+\]`).ReplaceAllString(theirs, "[0:0]")
			theirs = regexp.MustCompile(`(?m)^COMMIT\n`).ReplaceAllString(theirs, "") // chains in the order of the table
			if diff := cmp.Diff(theirs, strings.Replace(ours, "COMMIT\n", "", 1)); diff != "" {
				t.Errorf("%s: -save +ours\n%s", v.program, diff)
			}
		}
	}
}
