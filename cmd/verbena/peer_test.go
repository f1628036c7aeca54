package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// The doctor looks at this host and at a peer that hands out recordings.
func TestDoctorPeer(t *testing.T) {
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
	var out, errs bytes.Buffer
	status := run(t.Context(), app{out: &out, err: &errs}, []string{"verbena", "doctor", "--interval", "0", "--json", "--peer", at})
	var report struct {
		Peer string `json:"peer"`
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || status == doctorUsage || report.Peer == "" {
		t.Errorf("status %d, peer %q, %v: %s", status, report.Peer, err, errs.String())
	}
	cancel()
	if status := <-ended; status != 0 {
		t.Errorf("the end of snapshot --listen: status %d", status)
	}
	errs.Reset()
	if status := run(t.Context(), app{out: io.Discard, err: &errs}, []string{"verbena", "doctor", "--interval", "31s", "--peer", "node8"}); status != doctorUsage || !strings.Contains(errs.String(), "at most 30s") {
		t.Errorf("a long interval: status %d, %q", status, errs.String())
	}
	for _, c := range [][2]string{
		{at, "refused"}, // it has ended
		{"127.0.0.1:1", "there must be: verbena snapshot --listen"},
		{"127.0.0.1:0", "the port must be 1 to 65535"},
		{"./nothing", "no such file"},
	} {
		errs.Reset()
		status := run(t.Context(), app{out: io.Discard, err: &errs}, []string{"verbena", "doctor", "--peer", c[0]})
		if s := errs.String(); status != doctorUsage || !strings.Contains(s, c[1]) || strings.Contains(s, "canceled") {
			t.Errorf("--peer %s: status %d, %q, want %q", c[0], status, s, c[1])
		}
	}
}
