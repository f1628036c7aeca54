package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/verbena-rdma/verbena/internal/freeport"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
)

func TestMain(m *testing.M) {
	programs := map[string]func(){"verbena": main, holderProgram: holdDevices}
	for _, t := range tools {
		programs[t.name] = main
	}
	testscript.Main(m, programs)
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// json FILE fails unless the file (or stdout, stderr) is one JSON
			// document; json FILE KEY… wants the keys in it.
			"json": func(ts *testscript.TestScript, neg bool, args []string) {
				var v any
				err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &v)
				if (err != nil) != neg {
					ts.Fatalf("%s as JSON: %v\n%s", args[0], err, ts.ReadFile(args[0]))
				}
				m, _ := v.(map[string]any)
				for _, k := range args[1:] {
					if _, ok := m[k]; !ok {
						ts.Fatalf("no %q in %s", k, ts.ReadFile(args[0]))
					}
				}
			},
			// oneline FILE wants exactly one line.
			"oneline": func(ts *testscript.TestScript, neg bool, args []string) {
				if s := ts.ReadFile(args[0]); strings.Count(s, "\n") != 1 || !strings.HasSuffix(s, "\n") {
					ts.Fatalf("not one line: %q", s)
				}
			},
			// port NAME puts a free TCP port into the environment.
			"port": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Setenv(args[0], strconv.Itoa(freeport.Get(t)))
			},
			// listening PORT waits until something listens on the TCP port.
			"listening": func(ts *testscript.TestScript, neg bool, args []string) {
				for i := 0; ; i++ {
					b4, _ := os.ReadFile("/proc/net/tcp")
					b6, _ := os.ReadFile("/proc/net/tcp6")
					var p int
					_, err := fmt.Sscan(args[0], &p)
					ts.Check(err)
					if strings.Contains(string(b4)+string(b6), fmt.Sprintf(":%04X 00000000", p)) {
						return
					}
					if i > 5_000_000 {
						ts.Fatalf("nobody listens on %d", p)
					}
				}
			},
		},
	})
}

// TestEveryJSONFlagIsJSON: every command that has --json prints one JSON
// document for every option it has, good or bad (nothing is reached: the server
// of the tests does not exist; a device that listens to nothing refuses what
// comes over the connection manager at once).
func TestEveryJSONFlagIsJSON(t *testing.T) {
	server := "127.0.0.1"
	if runtime.GOOS == "linux" { // which has all of 127/8
		server = "127.0.6.9"
		dev, err := verbs.Open(verbs.Config{Addr: netip.MustParseAddr(server)})
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		cm, err := rdmacm.Open(dev)
		if err != nil {
			t.Fatal(err)
		}
		defer cm.Close()
	}
	for _, tool := range tools {
		cmd := tool.make(app{out: io.Discard, err: io.Discard}, tool.name)
		if cmd.DisableFlagParsing {
			continue // it reads its line itself, as iproute2's rdma does, with -j and --json
		}
		if cmd.Flags().Lookup("json") == nil {
			t.Errorf("%s has no --json", tool.name)
			continue
		}
		if !strings.HasPrefix(tool.name, "ib_") {
			continue
		}
		for _, args := range [][]string{
			{},
			{"-a"},
			{"-b"},
			{"-c", "UD"},
			{"-c", "XX"},
			{"-e"},
			{"-D", "5"},
			{"-D", "0"},
			{"-H"},
			{"-U"},
			{"-N"},
			{"-I", "5"},
			{"-l", "4"},
			{"-m", "1"},
			{"-n", "1"},
			{"-o", "3"},
			{"-q", "0"},
			{"-Q", "3"},
			{"-r", "5"},
			{"-s", "1G"},
			{"-s", "0"},
			{"-t", "0"},
			{"-u", "99"},
			{"-w", "5"},
			{"-x", "500"},
			{"-R"},
			{"-T", "5"},
			{"-S", "9"},
			{"-A", "X"},
			{"--tclass", "300"},
			{"--report_gbits"},
			{"--histogram"},
			{"--min-bw", "5"},
			{"--max-lat", "5"},
			{"--output", "latency"},
		} {
			var out, errs bytes.Buffer
			line := append(append([]string{tool.name, "--json", "-p", "1"}, args...), server)
			status := run(context.Background(), app{out: &out, err: &errs}, line)
			var doc struct {
				Error   string           `json:"error"`
				Results []map[string]any `json:"results"`
			}
			if err := json.Unmarshal(out.Bytes(), &doc); err != nil || status != 1 || doc.Error == "" || doc.Results == nil {
				t.Errorf("%q: status %d, %v\n%s", line, status, err, out.Bytes())
			}
			if s := errs.String(); strings.Count(s, "\n") != 1 || strings.Contains(s, "goroutine") {
				t.Errorf("%q: standard error is not one line: %q", line, s)
			}
		}
	}
}

func TestHelpNamesEveryOptionOfPerftest(t *testing.T) {
	for _, tool := range tools {
		var out, errs bytes.Buffer
		if status := run(context.Background(), app{out: &out, err: &errs}, []string{"/usr/bin/" + tool.name, "-h"}); status != 0 || errs.Len() > 0 {
			t.Errorf("%s -h: status %d, %s", tool.name, status, errs.String())
		}
		if !strings.Contains(out.String(), tool.name) {
			t.Errorf("%s -h does not name the program:\n%s", tool.name, out.String())
		}
	}
}
