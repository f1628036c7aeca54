package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// iperf is iperf3 with one TCP stream, in the child's network.
type iperf struct {
	c      *child
	server *exec.Cmd
	peer   Offer
	rate   float64 // bytes a second of the last slot
}

// iperfVersion returns what "iperf3 --version" calls itself, or "" where there
// is none.
func iperfVersion() string {
	out, err := exec.Command("iperf3", "--version").Output()
	if err != nil {
		return ""
	}
	words := strings.Fields(string(out))
	if len(words) < 2 {
		return "iperf3"
	}
	return "iperf3 " + words[1]
}

// prepare starts the server at the far end and waits until it listens.
func (p *iperf) prepare() (o Offer, err error) {
	if p.c.near {
		return o, nil
	}
	o.Port = p.c.port + 10
	p.server = exec.Command("iperf3", "-s", "-B", p.c.addr.String(), "-p", strconv.Itoa(o.Port), "--forceflush")
	dieWithParent(p.server)
	out, err := p.server.StdoutPipe()
	if err != nil {
		return o, err
	}
	if err := p.server.Start(); err != nil {
		p.server = nil
		return o, err
	}
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if strings.Contains(line, "listening") {
			break
		}
		if err != nil {
			return o, fmt.Errorf("iperf3 -s: %w", err)
		}
	}
	go func() { _, _ = r.WriteTo(nothing{}) }()
	return o, nil
}

// nothing is a writer to which everything may be written.
type nothing struct{}

func (nothing) Write(p []byte) (int, error) { return len(p), nil }

func (p *iperf) join(peer Offer) error { p.peer = peer; return nil }

// iperfReport is the part of iperf3's JSON that is looked at.
type iperfReport struct {
	Error string
	End   struct {
		SumReceived struct {
			Seconds float64
			Bytes   uint64
		} `json:"sum_received"`
		CPU struct {
			HostTotal   float64 `json:"host_total"` // percent
			RemoteTotal float64 `json:"remote_total"`
		} `json:"cpu_utilization_percent"`
	}
}

// slot sends as many bytes as the last slot's rate would take d for, as iperf3
// counts time in whole seconds.
func (p *iperf) slot(d time.Duration) (s Sample, err error) {
	if p.rate == 0 {
		p.rate = 1e9
	}
	n := max(uint64(p.rate*d.Seconds()), 16<<20)
	out, err := exec.Command("iperf3", "-c", p.peer.Addr, "-p", strconv.Itoa(p.peer.Port),
		"-n", strconv.FormatUint(n, 10), "-J").Output()
	var r iperfReport
	if jsonErr := json.Unmarshal(out, &r); jsonErr != nil {
		return s, errors.Join(err, jsonErr)
	}
	if r.Error != "" {
		return s, fmt.Errorf("iperf3: %s", r.Error)
	}
	got := &r.End.SumReceived
	if got.Bytes == 0 || got.Seconds <= 0 {
		return s, errors.New("iperf3 reports no bytes")
	}
	p.rate = float64(got.Bytes) / got.Seconds
	return Sample{
		Bytes: got.Bytes, Messages: got.Bytes / (128 << 10), Seconds: got.Seconds,
		CPU: r.End.CPU.HostTotal / 100 * got.Seconds, FarCPU: r.End.CPU.RemoteTotal / 100 * got.Seconds,
	}, nil
}

func (p *iperf) serve(h *halt) error { return idle{}.serve(h) }

func (p *iperf) close() error {
	if p.server == nil {
		return nil
	}
	_ = p.server.Process.Kill()
	_ = p.server.Wait() // says that it was killed
	return nil
}
