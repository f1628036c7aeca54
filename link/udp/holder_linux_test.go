package udp

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/verbena-rdma/verbena/internal/need"
)

const procHead = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n"

// host builds a tree like /proc and /sys.
func host(t *testing.T, files map[string]string, links map[string]string) hostView {
	t.Helper()
	root := t.TempDir()
	for name, data := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range links {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	return hostView{proc: filepath.Join(root, "proc"), sys: filepath.Join(root, "sys")}
}

// line is a socket bound to 127.0.0.1:4791, or to every address.
func line(addr string) string {
	return "  101: " + addr + ":12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000  1042        0 77123 2 0000000000000000 0\n"
}

func TestHolderIsNamed(t *testing.T) {
	if _, _, ok := parseProcAddr("0100007F:12B7"); !ok {
		t.Skip("the tables are written for little-endian machines")
	}
	const lo, lo2, all, all6 = "0100007F", "0200007F", "00000000", "00000000000000000000000000000000"
	otherProc := map[string]string{"proc/4242/fd/7": "socket:[77123]", "proc/4242/fd/8": "socket:[1]", "proc/4242/fd/0": "/dev/null"}
	for name, c := range map[string]struct {
		files map[string]string
		links map[string]string
		want  []string
	}{
		"a process": {
			map[string]string{"proc/net/udp": procHead + line(lo2) + line(lo), "proc/4242/comm": "ib_write_bw\n"},
			otherProc,
			[]string{"process 4242 (ib_write_bw)", "stop it"},
		},
		"a process on every address": {
			map[string]string{"proc/net/udp": procHead + line(all), "proc/4242/comm": "x\n"},
			otherProc,
			[]string{"process 4242", "every address"},
		},
		"a process on every address of both families": {
			map[string]string{"proc/net/udp": procHead, "proc/net/udp6": procHead + line(all6), "proc/4242/comm": "x\n"},
			otherProc,
			[]string{"process 4242", "every address"},
		},
		"soft RoCE": {
			map[string]string{"proc/net/udp": procHead + line(all), "proc/4242/comm": "x\n", "sys/class/infiniband/rxe0/parent": "eth0\n", "sys/class/infiniband/mlx5_0/node_guid": "\n"},
			map[string]string{"proc/4242/fd/0": "/dev/null"},
			[]string{"soft RoCE", "rdma link delete rxe0"},
		},
		"nobody visible": {
			map[string]string{"proc/net/udp": procHead + line(all)},
			map[string]string{"proc/4242/fd/0": "/dev/null"},
			[]string{"no process that is visible", "rdma link"},
		},
		"only another address": {
			map[string]string{"proc/net/udp": procHead + line(lo2)},
			nil,
			[]string{"not visible"},
		},
		"nonsense": {
			map[string]string{"proc/net/udp": "x\nx x x x x x x x x x x\n 1: zz:12B7 0 0 0 0 0 0 0 0 0\n 1: 01:12B7 0 0 0 0 0 0 0 0 0\n"},
			nil,
			[]string{"not visible"},
		},
		"nothing": {nil, nil, []string{"not visible"}},
	} {
		got := host(t, c.files, c.links).holder(netip.MustParseAddr("127.0.0.1"), Port)
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q, want … %q …", name, got, w)
			}
		}
	}
}

func TestHolderOfAnotherUser(t *testing.T) {
	if os.Getuid() == 0 {
		asNobody(t)
		return
	}
	h := host(t, map[string]string{"proc/net/udp": procHead + line("0100007F")}, map[string]string{"proc/4242/fd/0": "/dev/null"})
	dir := filepath.Join(h.proc, "4242/fd")
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o755)
	if got := h.holder(netip.MustParseAddr("127.0.0.1"), Port); !strings.Contains(got, "user 1042") {
		t.Error(got)
	}
}

// asNobody runs the calling test again as user 65534, since root sees the
// descriptors of everybody.
func asNobody(t *testing.T) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "TMPDIR=/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES):
		need.Missing(t, "may not run as nobody: %v", err)
	case err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

func TestProcAddresses(t *testing.T) {
	if _, p, _ := parseProcAddr("0100007F:12B7"); p != 4791 {
		t.Errorf("port %d", p)
	}
	a, _, ok := parseProcAddr("B80D0120000000000000000001000000:12B7")
	if want := netip.MustParseAddr("2001:db8::1"); !ok || a != want {
		t.Errorf("%v, want %v", a, want)
	}
}

func TestPortInUseNamesUs(t *testing.T) {
	cfg := Config{Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Port: uint16(31500 + os.Getpid()%500)}
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, portable := range []bool{false, true} {
		cfg.Portable = portable
		_, err := Open(cfg)
		if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "this process itself") || !strings.Contains(err.Error(), fmt.Sprint(cfg.Port)) {
			t.Errorf("portable %v: %v", portable, err)
		}
	}
}
