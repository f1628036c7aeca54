package control_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/verbena-rdma/verbena/diag/control"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/internal/need"
)

// role is what the test's program does instead of testing.
const role = "VERBENA_TEST_CONTROL_ROLE"

func TestMain(m *testing.M) {
	switch what, arg, _ := strings.Cut(os.Getenv(role), " "); what {
	case "":
		goleak.VerifyTestMain(m)
	case "serve":
		s, err := control.Listen(func(control.Want) snapshot.Device { return device(arg) })
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(s.Name())
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	case "list":
		list, err := control.Devices(control.Query{})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for _, d := range list {
			fmt.Println("device", d.Name, d.Attr.Why())
		}
		fmt.Println("end")
		os.Exit(0)
	case "knock":
		c, err := net.Dial("unix", arg)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_, _ = io.WriteString(c, `{"version":1}`+"\n")
		if b, _ := io.ReadAll(c); len(b) > 0 {
			fmt.Println("answered")
		} else {
			fmt.Println("hung up")
		}
		os.Exit(0)
	}
}

func device(name string) snapshot.Device {
	return snapshot.Device{Name: name, Ports: []snapshot.Port{}, QPs: snapshot.Known([]snapshot.QP{{LQPN: 17, Type: "RC", State: "RTS"}})}
}

// child is another process that serves a device.
type child struct {
	cmd  *exec.Cmd
	name string // of its socket
	in   io.WriteCloser
}

func serve(t *testing.T, device string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"=serve "+device)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, in: in}
	t.Cleanup(func() { c.kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "@verbena/") {
		t.Fatalf("the child says %q, %v", line, err)
	}
	c.name = strings.TrimSpace(line)
	return c
}

// kill is kill -9, once.
func (c *child) kill() {
	if c.in != nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		c.in.Close()
		c.in = nil
	}
}

// ours keeps the devices whose names begin so: other programs of this host may have
// some, too.
func ours(t *testing.T, q control.Query, prefix string) []snapshot.Device {
	t.Helper()
	list, err := control.Devices(q)
	if err != nil {
		t.Fatal(err)
	}
	var out []snapshot.Device
	for _, d := range list {
		if strings.HasPrefix(d.Name, prefix) {
			out = append(out, d)
		}
	}
	return out
}

func TestTwoProcesses(t *testing.T) {
	a := serve(t, "ctl_two")
	b := serve(t, "ctl_two")
	list := ours(t, control.Query{}, "ctl_two")
	if len(list) != 2 {
		t.Fatalf("%d devices: %+v", len(list), list)
	}
	// The first keeps its name, the second gets its process's number.
	if list[0].Name != "ctl_two" || list[0].PID != a.cmd.Process.Pid {
		t.Errorf("first: %s of %d, want ctl_two of %d", list[0].Name, list[0].PID, a.cmd.Process.Pid)
	}
	if want := fmt.Sprintf("ctl_two-%d", b.cmd.Process.Pid); list[1].Name != want || list[1].PID != b.cmd.Process.Pid {
		t.Errorf("second: %s of %d, want %s", list[1].Name, list[1].PID, want)
	}
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", a.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(comm)); list[0].Comm != want || list[0].QPs.Or(nil)[0].Comm != want || list[0].QPs.Or(nil)[0].PID.Or(0) != a.cmd.Process.Pid {
		t.Errorf("owner: %q, %+v; want %q", list[0].Comm, list[0].QPs, want)
	}
	// Dead ones are gone at once, without a trace and without a wait.
	a.kill()
	if list = ours(t, control.Query{}, "ctl_two"); len(list) != 1 || list[0].Name != "ctl_two" || list[0].PID != b.cmd.Process.Pid {
		t.Errorf("after kill -9: %+v", list)
	}
}

// A process that is stopped costs the timeout, and hides no other.
func TestStoppedProcess(t *testing.T) {
	stopped, running := serve(t, "ctl_stop"), serve(t, "ctl_stop")
	if err := stopped.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitStopped(t, stopped.cmd.Process.Pid)
	list, err := control.Devices(control.Query{Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var found, told bool
	for _, d := range list {
		found = found || d.Name == "ctl_stop" && d.PID == running.cmd.Process.Pid
		told = told || d.Name == "" && strings.Contains(d.Attr.Why(), fmt.Sprintf("process %d: does not answer", stopped.cmd.Process.Pid))
	}
	if !found || !told {
		t.Errorf("running found %v, stopped told %v: %+v", found, told, list)
	}
}

// waitStopped waits until the kernel has all of a process stopped: the signal only
// asks for it.
func waitStopped(t *testing.T, pid int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/task", pid)
	for until := time.Now().Add(time.Minute); ; runtime.Gosched() {
		tasks, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		running := 0
		for _, task := range tasks {
			b, err := os.ReadFile(dir + "/" + task.Name() + "/stat")
			if err == nil && !strings.Contains(string(b), ") T ") {
				running++
			}
		}
		if running == 0 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%d threads of process %d do not stop", running, pid)
		}
	}
}

// Another user, here one without any rights, sees nothing and gets nothing.
func TestAnotherUserSeesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		need.Missing(t, "needs root to become somebody else")
	}
	c := serve(t, "ctl_user")
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "verbena-control-") // where another user may go
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := dir + "/list"
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Dir = dir
	cmd.Env = []string{role + "=list"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "end\n" {
		t.Errorf("nobody's list: %v\n%s", err, out)
	}
	// Not even one who knows the name: the kernel says who he is.
	knock := func(as *syscall.SysProcAttr) string {
		ask := exec.Command(program)
		ask.Dir, ask.Env, ask.SysProcAttr = dir, []string{role + "=knock " + c.name}, as
		out, err := ask.CombinedOutput()
		if err != nil {
			t.Errorf("knock: %v\n%s", err, out)
		}
		return string(out)
	}
	if got := knock(cmd.SysProcAttr); got != "hung up\n" {
		t.Errorf("nobody's question: %s", got)
	}
	if got := knock(nil); got != "answered\n" {
		t.Errorf("the same question by this user: %s", got)
	}
}

// talk sends bytes to a server of this process and returns what comes back.
func talk(t *testing.T, name, request string) map[string]any {
	t.Helper()
	c, err := net.Dial("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil || len(b) == 0 {
		return nil
	}
	var a map[string]any
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatalf("%q: the answer is no JSON: %v\n%s", request, err, b)
	}
	return a
}

func TestRequests(t *testing.T) {
	s, err := control.Listen(func(w control.Want) snapshot.Device { return device(fmt.Sprintf("ctl_req_%v", w.Resources)) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct {
		request, err string
		device       string
		silent       bool
	}{
		{request: `{"version":1}` + "\n", device: "ctl_req_false"},
		{request: `{"version":1,"resources":true,"later":"unknown"}` + "\r\n", device: "ctl_req_true"},
		{request: `{"version":2}` + "\n", err: "version is 2, this process speaks 1"},
		{request: `{}` + "\n", err: "version is 0, this process speaks 1"},
		{request: "\x00\xff\xfe garbage\n", err: "the request is no JSON of version 1"},
		{request: "[1,2]\n", err: "the request is no JSON of version 1"},
		{request: strings.Repeat("x", control.MaxRequest), err: "the request has more than 1024 bytes"},
		{request: "", silent: true},
		{request: `{"version":1}`, silent: true},
	} {
		a := talk(t, s.Name(), c.request)
		switch {
		case c.silent:
			if a != nil {
				t.Errorf("%.40q: %v", c.request, a)
			}
		case c.err != "":
			if a["error"] != c.err || a["device"] != nil {
				t.Errorf("%.40q: %v, want %q", c.request, a, c.err)
			}
		default:
			d, _ := a["device"].(map[string]any)
			if d["name"] != c.device || a["error"] != nil || a["version"] != 1.0 {
				t.Errorf("%.40q: %v, want %s", c.request, a, c.device)
			}
		}
	}
}

// Clients that say nothing, read nothing or come in crowds take no file descriptors
// or goroutines for long, and Close waits for none of them.
func TestHostileClients(t *testing.T) {
	big := device("ctl_hostile")
	big.NodeDesc = snapshot.Known(strings.Repeat("x", 8<<20))
	s, err := control.Listen(func(control.Want) snapshot.Device { return big })
	if err != nil {
		t.Fatal(err)
	}
	var conns []net.Conn
	for i := range 100 {
		c, err := net.Dial("unix", s.Name())
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		conns = append(conns, c)
		if i%2 == 0 { // asks and does not read
			if _, err := io.WriteString(c, `{"version":1}`+"\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := time.Now()
	s.Close()
	if took := time.Since(before); took > control.Patience*10 {
		t.Errorf("Close took %v", took)
	}
	for _, c := range conns {
		c.Close()
	}
	if left := ours(t, control.Query{}, "ctl_hostile"); len(left) != 0 {
		t.Errorf("still listed: %+v", left)
	}
	s.Close()
}

// A server that serves a crowd of silent clients still gets to the honest one.
func TestSilentClientsGiveWay(t *testing.T) {
	s, err := control.Listen(func(control.Want) snapshot.Device { return device("ctl_silent") })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 4 { // all that are served at a time
		c, err := net.Dial("unix", s.Name())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if list := ours(t, control.Query{Timeout: time.Minute}, "ctl_silent"); len(list) != 1 {
		t.Errorf("found %d times", len(list))
	}
}

// A socket that lies about what it is gives one line, or nothing.
func TestHostileServers(t *testing.T) {
	for i, c := range []struct {
		name, answer, why string
	}{
		{"garbage", "\xff\x00{]\n", "the answer is no JSON of version 1"},
		{"nothing", "", ""},
		{"half", `{"version":1,"device":{"na`, "the answer is no JSON of version 1"},
		{"nameless", `{"version":1,"device":{}}`, "the answer of version 1 names no device"},
		{"refusal", `{"version":7,"error":"version is 1, this process speaks 7"}`, "version is 1, this process speaks 7"},
		{"endless", "", fmt.Sprintf("the answer is longer than %d bytes", control.MaxAnswer)},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := fmt.Sprintf("@verbena/1/%d/%d-%016x", os.Geteuid(), os.Getpid(), i)
			l, err := net.Listen("unix", name)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = bufio.NewReader(conn).ReadString('\n')
					if _, err := io.WriteString(conn, c.answer); c.name == "endless" && err == nil {
						for piece := make([]byte, 1<<20); err == nil; {
							_, err = conn.Write(piece)
						}
					}
					conn.Close()
				}
			}()
			list, err := control.Devices(control.Query{Timeout: 10 * time.Minute})
			l.Close()
			<-done
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, d := range list {
				if why := d.Attr.Why(); d.Name == "" && strings.HasPrefix(why, fmt.Sprintf("process %d: ", os.Getpid())) {
					_, got, _ = strings.Cut(why, ": ")
				}
			}
			if got != c.why {
				t.Errorf("told %q, want %q", got, c.why)
			}
		})
	}
}
