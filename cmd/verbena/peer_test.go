package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// listening runs verbena snapshot --listen until stop is called, which returns its exit
// status.
func listening(t *testing.T) (at string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	pr, pw := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, app{out: io.Discard, err: pw}, []string{"verbena", "snapshot", "--listen", "127.0.0.1:0", "--anonymise"})
		pw.Close()
	}()
	line, err := bufio.NewReader(pr).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, at, ok := strings.Cut(strings.TrimSuffix(line, "/\n"), "http://")
	if !ok {
		t.Fatalf("%q says no address", line)
	}
	return at, func() int { cancel(); return <-ended }
}

// The doctor looks at this host, or at one that hands out recordings, and at a peer that
// does.
func TestDoctorRemote(t *testing.T) {
	at, stop := listening(t)
	dir := filepath.Join(t.TempDir(), "recorded")
	if status := run(t.Context(), app{out: io.Discard, err: io.Discard}, []string{"verbena", "snapshot", "-o", dir, "--interval", "0"}); status != 0 {
		t.Fatalf("snapshot: status %d", status)
	}
	for _, args := range [][]string{{"--peer", at}, {"--host", at}, {"--host", dir, "--peer", at}, {"--host", at, "--peer", dir}, {"--host", dir}} {
		var out, errs bytes.Buffer
		status := run(t.Context(), app{out: &out, err: &errs}, append([]string{"verbena", "doctor", "--interval", "0", "--json"}, args...))
		var report struct {
			Host string `json:"host"`
			Peer string `json:"peer"`
		}
		if err := json.Unmarshal(out.Bytes(), &report); err != nil || status == doctorUsage || report.Host == "" || (report.Peer != "") != strings.Contains(strings.Join(args, " "), "--peer") {
			t.Errorf("%v: status %d, host %q, peer %q, %v: %s", args, status, report.Host, report.Peer, err, errs.String())
		}
	}
	if status := stop(); status != 0 {
		t.Errorf("the end of snapshot --listen: status %d", status)
	}
	for _, flag := range []string{"--host", "--peer"} {
		for _, c := range [][2]string{
			{at, "no recording of that name is here; as a host: " + at}, // it has ended
			{at, "refused"},
			{"127.0.0.1:1", "there must be: verbena snapshot --listen"},
			{"127.0.0.1:0", "the port must be 1 to 65535"},
			{"a b", "is no host"},
			{"./nothing", "no such file"},
			{filepath.Join(dir, "meta.json"), "meta.json"},
		} {
			wrong(t, c[1], "doctor", flag, c[0])
		}
		wrong(t, "at most 30s", "doctor", "--interval", "31s", flag, "node8")
	}
	wrong(t, "are about this host", "doctor", "--host", dir, "--pid", "1")
	wrong(t, "are about this host", "doctor", "--host", "node8", "--app", "sh")
}

// wrong runs a command that is used wrongly: one line that says it, and the exit status
// of the doctor for that.
func wrong(t *testing.T, want string, args ...string) {
	t.Helper()
	var errs bytes.Buffer
	status := run(t.Context(), app{out: io.Discard, err: &errs}, append([]string{"verbena"}, args...))
	s := errs.String()
	if line, rest, ok := strings.Cut(s, "\n"); ok && strings.HasPrefix(line, "looking again") { // this host, while the other is asked
		s = rest
	}
	if status != doctorUsage || !strings.Contains(s, want) || strings.Contains(s, "canceled") || strings.Count(s, "\n") != 1 {
		t.Errorf("%v: status %d, %q, want one line with %q", args, status, s, want)
	}
}

// A name that may be a recording and a host is a recording; where that one cannot be read,
// the other way to read the name is said.
func TestHostOrRecording(t *testing.T) {
	t.Chdir(t.TempDir())
	if status := run(t.Context(), app{out: io.Discard, err: io.Discard}, []string{"verbena", "snapshot", "-o", "node8", "--interval", "0"}); status != 0 {
		t.Fatalf("snapshot: status %d", status)
	}
	for _, d := range []string{"node9", "node7.example"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, flag := range []string{"--host", "--peer"} {
		other := map[string]string{"--host": "--peer", "--peer": "--host"}[flag]
		var errs bytes.Buffer
		if status := run(t.Context(), app{out: io.Discard, err: &errs}, []string{"verbena", "doctor", "--interval", "0", other, "./node8", flag, "node8"}); status == doctorUsage {
			t.Errorf("%s: status %d", flag, status)
		}
		if errs.Len() != 0 {
			t.Errorf("%s node8 says %q", flag, errs.String())
		}
		for _, name := range []string{"node9", "node7.example"} { // a directory that is no recording
			errs.Reset()
			status := run(t.Context(), app{out: io.Discard, err: &errs}, []string{"verbena", "doctor", "--interval", "0", other, "./node8", flag, name})
			if s := errs.String(); status != doctorUsage || !strings.Contains(s, "a host of that name would be "+name+":9881") {
				t.Errorf("%s %s: status %d, %q", flag, name, status, s)
			}
		}
	}
}

// A program that there is not is said at once, before anything is looked at.
func TestNoSuchProgram(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--pid", "99999999"}, "--pid: there is no process 99999999"},
		{[]string{"--pid", "-1"}, "--pid is -1, must be a process"},
		{[]string{"--app", "no-such-name"}, `--app: there is no process named "no-such-name"`},
		{[]string{"--app", "sh", "--pid", "1"}, "name one program"},
	} {
		wrong(t, c.want, append([]string{"doctor", "--interval", "1h"}, c.args...)...)
		var errs bytes.Buffer
		status := run(t.Context(), app{out: io.Discard, err: &errs}, append([]string{"verbena", "snapshot", "--interval", "1h", "-o", dir}, c.args...))
		if s := errs.String(); status == 0 || !strings.Contains(s, c.want) || strings.Count(s, "\n") != 1 {
			t.Errorf("snapshot %v: status %d, %q", c.args, status, s)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("snapshot %v wrote a recording", c.args)
		}
	}
}
