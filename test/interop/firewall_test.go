//go:build linux

package interop

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
	"github.com/verbena-rdma/verbena/internal/need"
	"github.com/verbena-rdma/verbena/test/interop/netns"
)

// TestDoctorSeesIPTables has Debian's iptables, of both kinds and for both families, drop RoCE in a namespace,
// and wants the doctor to find it there, and nothing where the rule is another one.
func TestDoctorSeesIPTables(t *testing.T) {
	rules, err := doctor.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"iptables-nft", "iptables-legacy", "ip6tables-nft", "ip6tables-legacy"} {
		for rule, want := range map[string]doctor.Status{
			"-A INPUT -p udp --dport 4791 -j DROP": doctor.Fail,
			"-A INPUT -p udp --dport 4790 -j DROP": doctor.Pass,
			"-A INPUT -p udp -j DROP":              doctor.Fail,
			"-P INPUT DROP":                        doctor.Fail,
		} {
			t.Run(program+" "+rule, func(t *testing.T) {
				s, ruled := behind(t, program, rule)
				if !ruled {
					want = doctor.Pass // there is nothing that could drop
				}
				r := doctor.Examine(doctor.Input{Host: snapshot.Window{After: s}}, rules)
				got := doctor.Status("nothing")
				for _, all := range [][]doctor.Finding{r.Findings, r.Skipped, r.Passed} {
					for _, f := range all {
						if f.Rule == "N02" {
							got = f.Status
							if want == doctor.Fail && f.Status == want && !strings.Contains(f.Cause, "4791") && strings.Contains(rule, "4791") {
								t.Errorf("the cause does not name the rule: %s", f.Cause)
							}
						}
					}
				}
				if got != want {
					t.Errorf("the doctor says %s, not %s; nftables %v, iptables %v, ip6tables %v", got, want, s.Firewall.NFT, s.Firewall.IPTables, s.Firewall.IP6Tables)
				}
			})
		}
	}
}

// behind is this host in a namespace with a rule, and with a software device beside. A
// kernel without iptables' own tables has no rule.
func behind(t *testing.T, program, rule string) (s *snapshot.Snapshot, ruled bool) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		need.Missing(t, "no %s program (package iptables)", program)
	}
	var failed error
	netns.New(t).Do(func() {
		out, err := exec.CommandContext(t.Context(), path, "-S").CombinedOutput()
		if ruled = err == nil || strings.HasSuffix(program, "-nft"); !ruled {
			t.Logf("no rule: %s", out)
		} else if out, err := exec.CommandContext(t.Context(), path, strings.Fields(rule)...).CombinedOutput(); err != nil {
			failed = fmt.Errorf("%s: %w: %s", rule, err, out)
			return
		}
		live, err := source.NewLive(source.LiveConfig{})
		if err != nil {
			failed = err
			return
		}
		defer live.Close()
		s = read.Host(live, read.Options{})
	})
	if failed != nil {
		t.Fatal(failed)
	}
	gid := snapshot.GID{GID: "0000:0000:0000:0000:0000:ffff:0a00:0001", Type: snapshot.Known("RoCE v2")}
	if strings.HasPrefix(program, "ip6") {
		gid.GID = "fd00:0000:0000:0000:0000:0000:0000:0001"
	}
	s.Devices = append(s.Devices, snapshot.Device{Name: "rxe0", Kind: snapshot.RXE, Ports: []snapshot.Port{{Number: 1, State: snapshot.Known(4), LinkLayer: snapshot.Known("Ethernet"), GIDs: []snapshot.GID{gid}}}})
	return s, ruled
}
