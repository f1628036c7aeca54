package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/internal/freeport"
)

// What is wrong with this end alone is said before the peer is asked, be this end the
// client or the server: nobody listens at the client's port, and nobody ever calls the
// server.
func TestRefusedBeforeThePeerIsAsked(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("all of 127.0.0.0/8 is the host on Linux only")
	}
	port := strconv.Itoa(freeport.Get(t))
	dir := t.TempDir()
	for _, c := range []struct{ line, want string }{
		{"perf write-bw --shards 0", "--shards 0: must be between 1 and 64"},
		{"perf write-bw --shards 65", "--shards 65: must be between"},
		{"perf write-bw --shards -1", "--shards -1: must be between"},
		{"perf write-bw -d nodev", `network interface "nodev": there is none of that name`},
		{"perf write-bw -d 10.255.255.254", "not an address of this host"},
		{"perf write-lat -d 127.0.6.130 -x 9", "GID index 9"},
		{"perf write-bw -d vrb_lo -x 60", "GID index 60"},
		{"perf write-bw -d 127.0.6.130 --dcqcn paper", "DCQCN needs a line rate"},
		{"perf send-bw -c UD -s 5000", "-s 5000: on UD a message is one packet, at most the path MTU of 4096 bytes"},
		{"perf send-lat -c UD -s 2000 -m 1024", "-s 2000: on UD a message is one packet, at most the path MTU of 1024 bytes"},
		{"perf write-bw --fault " + dir + "/none.yaml", "--fault: "},
		{"perf write-bw --out_json --out_json_file " + dir + "/no/such.json", "--out_json_file: "},
		{"perf write-bw --out_json --out_json_file " + dir, "--out_json_file: "},
		{"perf write-bw -R -d nodev", `network interface "nodev": there is none of that name`},
		{"pingpong ud -s 100000", "-s 100000: on UD a message is one packet, at most the path MTU of 4096 bytes"},
		{"pingpong rc -d nodev", `network interface "nodev": there is none of that name`},
		{"pingpong uc -d 127.0.6.130 -g 9", "GID index 9"},
	} {
		for _, host := range []string{"", "127.0.0.1"} {
			args := append([]string{"verbena"}, strings.Fields(c.line)...)
			args = append(args, "-p", port)
			if host != "" {
				args = append(args, host)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			var out, msg bytes.Buffer
			status := run(ctx, app{in: &bytes.Buffer{}, out: &out, err: &msg}, args)
			stop()
			if status != 1 || strings.Count(msg.String(), "\n") != 1 || !strings.Contains(msg.String(), c.want) || out.Len() > 0 {
				t.Errorf("%v: status %d, %q, %q; want %q", args, status, msg.String(), out.String(), c.want)
			}
		}
	}
}

// A report file that was opened before the test is as it was if there is nothing to report.
func TestLateFile(t *testing.T) {
	dir := t.TempDir()
	fresh, old := filepath.Join(dir, "fresh"), filepath.Join(dir, "old")
	if err := os.WriteFile(old, []byte("a long text from before"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fresh, old} {
		f, err := openLate(name)
		if err != nil {
			t.Fatal(err)
		}
		f.drop()
	}
	if _, err := os.Stat(fresh); err == nil {
		t.Error("a file is left")
	}
	if b, err := os.ReadFile(old); err != nil || string(b) != "a long text from before" {
		t.Errorf("%q, %v", b, err)
	}
	for _, name := range []string{fresh, old} {
		f, err := openLate(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.write([]byte("new")); err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(name); err != nil || string(b) != "new" {
			t.Errorf("%q, %v", b, err)
		}
	}
}
