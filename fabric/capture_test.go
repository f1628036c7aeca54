package fabric

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo"
	"github.com/verbena-rdma/verbena/fabric/work"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/ip"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// captured is a run with a bit of everything, and its captures by port.
type captured struct {
	r     *Run
	files map[string]*bytes.Buffer
}

// mixed runs three RDMA flows of all services and one of TCP into host 3, which
// takes in less than arrives: marks, notifications, pauses.
func mixed(t testing.TB, opt CaptureOptions, change func(*scenario.Scenario), sets ...string) *captured {
	t.Helper()
	g, err := topo.SpineLeaf{Leaves: 2, Spines: 1, HostsPerLeaf: 2, Rate: 100 * sim.Gbps, Delay: sim.Microsecond}.Build()
	if err != nil {
		t.Fatal(err)
	}
	sets = append([]string{
		"switch.ecn.kmin=8KB", "switch.ecn.kmax=8KB", "switch.ecn.pmax=1", "switch.buffer.xoff=20KB",
		"record.pcap=[all]", "host.rdma.ack_every=4", "host.rdma.timeout_exp=8",
	}, sets...)
	sc, err := scenario.ParseSet("mixed.yaml", []byte("name: mixed\nrecord: {series: none}\n"), sets)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(sc)
	}
	flows := []work.Flow{
		{Src: 0, Dst: 3, Bytes: 100_001, Prio: -1, DSCP: -1},
		{Src: 1, Dst: 3, Bytes: 60_000, Prio: -1, DSCP: -1, Op: work.Read},
		{Src: 2, Dst: 3, Bytes: 99_999, Prio: -1, DSCP: -1, Op: work.Send},
		{Src: 1, Dst: 3, Bytes: 50_000, Prio: -1, DSCP: -1, Service: 1},
		{Src: 1, Dst: 3, Bytes: 1000, Prio: -1, DSCP: -1, Service: 2, Op: work.Send},
		tcpFlow(0, 3, 30_000),
	}
	r := startRun(t, sc, g, flows)
	c := &captured{r: r, files: map[string]*bytes.Buffer{}}
	capt, err := r.Capture(func(port string) (io.Writer, error) {
		c.files[port] = &bytes.Buffer{}
		return c.files[port], nil
	}, opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := capt.Flush(); err != nil {
		t.Fatal(err)
	}
	noBreach(t, r.Result())
	if n, missed := capt.Packets(); n == 0 || missed != 0 {
		t.Fatalf("%d frames captured, %d missed", n, missed)
	}
	return c
}

// seenFrame is one frame of a capture.
type seenFrame struct {
	data []byte
	ci   gopacket.CaptureInfo
	out  bool
}

func readCapture(t testing.TB, name string, b []byte) (all []seenFrame) {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(b), pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if i, err := r.Interface(0); err != nil || i.Name != name {
		t.Fatalf("interface %q, %v", i.Name, err)
	}
	for {
		data, ci, opts, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, seenFrame{bytes.Clone(data), ci, opts.Flags != nil && opts.Flags.Direction == pcapgo.NgEpbFlagDirectionOutbound})
	}
}

// each calls f with every port and what was captured there.
func (c *captured) each(t *testing.T, f func(name string, p *port.Port, node int32, frames []seenFrame)) {
	t.Helper()
	for node := range c.r.Ports {
		for i, p := range c.r.Ports[node] {
			name := c.r.portName(int32(node), int32(i))
			f(name, p, int32(node), readCapture(t, name, c.files[name].Bytes()))
		}
	}
}

// With real headers the frames of a capture are, to the byte, those that the
// port has counted, and they are in the order of their instants.
func TestCaptureIsWhatPortsCount(t *testing.T) {
	for _, sets := range [][]string{nil, {"host.tagged=true", "switch.trust=pcp"}, {"topology.subnets=per-leaf"}} {
		for _, full := range []bool{false, true} {
			c := mixed(t, CaptureOptions{Full: full}, nil, sets...)
			c.each(t, func(name string, p *port.Port, _ int32, frames []seenFrame) {
				var packets, size [2]uint64 // out, in
				var stops [2]uint64
				last := time.Time{}
				for i, f := range frames {
					way := 1
					if f.out {
						way = 0
					}
					if f.ci.Timestamp.Before(last) {
						t.Errorf("%s: frame %d is before the one before it", name, i)
					}
					last = f.ci.Timestamp
					if full != (f.ci.CaptureLength == f.ci.Length) && full {
						t.Errorf("%s: frame %d has %d of %d bytes", name, i, f.ci.CaptureLength, f.ci.Length)
					}
					e, _ := ether.FrameOf(f.data)
					if e.Type() == ether.TypeControl {
						stops[way]++
						continue
					}
					packets[way]++
					size[way] += uint64(f.ci.Length) + 4 // FCS
				}
				var want, wantSize, control [2]uint64
				for q := range uint8(8) {
					s := p.Prio(q)
					want[0], want[1] = want[0]+s.TxPackets, want[1]+s.RxPackets
					wantSize[0], wantSize[1] = wantSize[0]+s.TxBytes, wantSize[1]+s.RxBytes
					control[0], control[1] = control[0]+s.StopTx+s.ResumeTx, control[1]+s.StopRx+s.ResumeRx
				}
				if packets != want || size != wantSize {
					t.Errorf("%s %v: captured %v frames of %v bytes, the port has counted %v of %v", name, sets, packets, size, want, wantSize)
				}
				if stops != control {
					t.Errorf("%s: captured %v PFC frames, the port has counted %v", name, stops, control)
				}
			})
		}
	}
}

// Whole frames decode, with the right ICRC and checksums, and carry the fields
// of the run: addresses, class, TTL, tag.
func TestCaptureFramesAreRight(t *testing.T) {
	for _, v1 := range []bool{false, true} {
		sets := []string{"host.tagged=true", "topology.subnets=per-leaf"}
		if v1 {
			sets = []string{"host.tagged=true", "host.roce=v1", "switch.trust=pcp"}
		}
		c := mixed(t, CaptureOptions{Full: true}, nil, sets...)
		g := c.r.Graph
		c.each(t, func(name string, _ *port.Port, node int32, frames []seenFrame) {
			for i, f := range frames {
				e, ok := ether.FrameOf(f.data)
				if !ok || e.Type() == ether.TypeControl {
					continue
				}
				if !e.Tagged() {
					t.Fatalf("%s: frame %d is not tagged", name, i)
				}
				var env roce.Envelope
				if why := env.Decode(f.data); why == roce.ReasonNone {
					if !env.Verify() {
						t.Fatalf("%s: frame %d has a wrong ICRC", name, i)
					}
					if (env.Kind == roce.V1) != v1 {
						t.Fatalf("%s: frame %d is %v", name, i, env.Kind)
					}
					// Each of the leaf and the spine has routed it.
					if want := map[bool]uint8{false: 63, true: 62}[f.out]; g.Nodes[node].Name == "spine0" && !v1 && env.TTL != want {
						t.Fatalf("%s: frame %d has TTL %d, want %d", name, i, env.TTL, want)
					}
					continue
				}
				var v4 ip.IPv4
				n, why := v4.Decode(e.Payload())
				if why != ip.ReasonNone || v4.Proto != ip.ProtoTCP || e.Tag().PCP() != 0 {
					t.Fatalf("%s: frame %d is neither RoCE nor TCP: %v %+v", name, i, why, v4)
				}
				// RFC 9293 §3.1: the sum over pseudo-header and segment is 0.
				seg := e.Payload()[n:v4.TotalLen]
				pseudo := append(append(append([]byte{}, v4.Src[:]...), v4.Dst[:]...), 0, 6, byte(len(seg)>>8), byte(len(seg)))
				if ip.Checksum(append(pseudo, seg...)) != 0 {
					t.Fatalf("%s: frame %d has a wrong TCP checksum", name, i)
				}
			}
		})
	}
}

// A corrupted packet has a wrong ICRC where it arrives, and a comment.
func TestCaptureShowsCorruption(t *testing.T) {
	g, err := topo.Star{Hosts: 2, Rate: 100 * sim.Gbps, Delay: sim.Microsecond}.Build()
	if err != nil {
		t.Fatal(err)
	}
	sc, err := scenario.ParseSet("bad.yaml", []byte("name: bad\nrecord: {series: none, pcap: [sw0]}\ntopology: {error_rate: 10%}\nhost: {rdma: {timeout_exp: 8}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := startRun(t, sc, g, []work.Flow{{Src: 0, Dst: 1, Bytes: 50_000, Prio: -1, DSCP: -1}})
	var in bytes.Buffer
	capt, err := r.Capture(func(name string) (io.Writer, error) {
		if name == "sw0/Ethernet0" {
			return &in, nil
		}
		return io.Discard, nil
	}, CaptureOptions{Full: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Finish(), capt.Flush()); err != nil {
		t.Fatal(err)
	}
	bad := uint64(0)
	for _, f := range readCapture(t, "sw0/Ethernet0", in.Bytes()) {
		var env roce.Envelope
		if env.Decode(f.data) == roce.ReasonNone && !env.Verify() {
			bad++
		}
	}
	if want := r.Ports[2][0].Stats.Errors; bad != want || bad == 0 {
		t.Errorf("%d frames with a wrong ICRC, the port has counted %d errors", bad, want)
	}
}

// A limit keeps frames out and says so; names that name nothing, and files that
// cannot be opened or written, are errors.
func TestCaptureLimitsAndErrors(t *testing.T) {
	sc, g := tcpStar(t, 2, sim.Microsecond, "record.pcap=[host0/eth0]", "record.pcap_packets=5")
	flows := []work.Flow{tcpFlow(0, 1, 10_000)}
	r := startRun(t, sc, g, flows)
	var b bytes.Buffer
	capt, err := r.Capture(func(string) (io.Writer, error) { return &b, nil }, CaptureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Finish(), capt.Flush(), capt.Flush()); err != nil {
		t.Fatal(err)
	}
	if n, missed := capt.Packets(); n != 5 || missed != 9 || len(readCapture(t, "host0/eth0", b.Bytes())) != 5 {
		t.Errorf("%d frames and %d missed, want 5 and 9", n, missed)
	}
	sc.Record.PCAP = scenario.Select{"host0", "nobody*"}
	r = startRun(t, sc, g, flows)
	if _, err := r.Capture(func(string) (io.Writer, error) { return &b, nil }, CaptureOptions{}); err == nil || !strings.Contains(err.Error(), "nobody*") {
		t.Errorf("error %v", err)
	}
	full := errors.New("no space left")
	sc.Record.PCAP = scenario.Select{"all"}
	r = startRun(t, sc, g, flows)
	if _, err := r.Capture(func(string) (io.Writer, error) { return nil, full }, CaptureOptions{}); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
	if capt, err = r.Capture(func(string) (io.Writer, error) { return brokenWriter{full}, nil }, CaptureOptions{Full: true}); err == nil {
		if err := r.Finish(); err != nil {
			t.Fatal(err)
		}
		err = capt.Flush()
	}
	if !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

// tshark reads captures as they were meant, and its counts are the simulator's:
// opcodes with the PSNs of their queue pairs one behind the other, CE marks,
// CNPs, PFC's classes and quanta, TCP's echoes; nothing is malformed.
func TestTsharkReadsSimulatedPorts(t *testing.T) {
	judge.Need(t, "tshark")
	for _, full := range []bool{false, true} {
		c := mixed(t, CaptureOptions{Full: full}, nil, "host.nic.pcie_rate=20Gbps", "host.nic.rx_buffer=200KB", "host.nic.xoff=30KB", "switch.ecn.priorities=[0,3]")
		res := c.r.Result()
		// At host 3: what it gets, what it answers, and how it stops its switch.
		rows := tshark(t, c.files["host3/eth0"].Bytes(),
			"infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.bth.destqp", "ip.dsfield.ecn", "ip.dsfield.dscp", "macc.opcode", "macc.cbfc.enbv",
			"macc.cbfc.pause_time.c3", "tcp.flags.ece", "tcp.len", "ip.src", "_ws.malformed", "frame.time_epoch", "tcp.analysis.flags")
		st := c.r.Ports[c.r.Graph.Endpoints[3].Node][0].Prio(3)
		var cnpOut, cnpIn, stop, resume, marked, markedData, tcpBytes, ece int
		next := map[string]uint64{}
		opcodes := map[string]int{}
		for i, f := range rows {
			if f[11] != "" || f[13] != "" {
				t.Errorf("tshark says of frame %d: %s %s", i+1, f[11], f[13])
			}
			in := f[10] != c.r.Graph.Endpoints[3].Addr.String()
			switch {
			case f[5] == "0x0101":
				if f[6] != "0x0008" {
					t.Errorf("frame %d: classes %s, want priority 3", i+1, f[6])
				}
				switch f[7] {
				case "65535":
					stop++
				case "0":
					resume++
				default:
					t.Errorf("frame %d: quanta %s", i+1, f[7])
				}
			case f[0] != "":
				opcodes[f[0]]++
				if f[0] == "129" {
					if in {
						cnpIn++
					} else {
						cnpOut++
					}
					break
				}
				if in && f[3] == "3" {
					marked++
				}
				// WRITE, SEND and READ response packets of RC: no PSN is missing.
				if in && f[0] != "17" && f[0] != "12" {
					psn, _ := strconv.ParseUint(f[1], 0, 32)
					key := f[2]
					if want, ok := next[key]; ok && psn != want {
						t.Errorf("frame %d for queue pair %s: PSN %d, want %d", i+1, key, psn, want)
					}
					next[key] = (psn + 1) & 0xFFFFFF
				}
			case f[9] != "":
				n, _ := strconv.Atoi(f[9])
				tcpBytes += n
				if f[8] == "1" || f[8] == "True" {
					ece++
				}
				if in && f[3] == "3" {
					markedData++
				}
			default:
				t.Errorf("frame %d is nothing that was sent: %v", i+1, f)
			}
		}
		var marks uint64
		for i := range res.Flows {
			switch f := &res.Flows[i]; {
			case f.Service == "TCP":
				if uint64(markedData) != f.Marks || tcpBytes != 30_000 || (ece > 0) != (f.Marks > 0) {
					t.Errorf("TCP: %d marked segments, %d bytes, %d echoes; the flow has %d marks", markedData, tcpBytes, ece, f.Marks)
				}
			case f.Op != "READ": // of which host 3 sends the data
				marks += f.Marks
			}
		}
		if uint64(marked) != marks || marks == 0 {
			t.Errorf("tshark reads %d packets with CE, the flows have %d marks", marked, marks)
		}
		if nic := &c.r.NICs[3].Stats; uint64(cnpOut) != nic.CNPSent || uint64(cnpIn) != nic.CNPHandled || cnpOut == 0 {
			t.Errorf("tshark reads %d CNPs out and %d in, the NIC has counted %d and %d", cnpOut, cnpIn, nic.CNPSent, nic.CNPHandled)
		}
		if uint64(stop) != st.StopTx || uint64(resume) != st.ResumeTx || stop == 0 || resume == 0 {
			t.Errorf("tshark reads %d stops and %d resumes, the port has counted %d and %d", stop, resume, st.StopTx, st.ResumeTx)
		}
		// WRITE first, middle, last; SEND; READ request and response; UC WRITE; UD
		// SEND; acknowledgements.
		for _, op := range []string{"6", "7", "8", "0", "1", "2", "12", "17", "38", "39", "40", "100"} {
			if opcodes[op] == 0 {
				t.Errorf("no packet of opcode %s, only %v", op, opcodes)
			}
		}
		if rows[0][12] == "" {
			t.Error("no time")
		}
	}
}

// tshark returns fields of every frame of a capture.
func tshark(t *testing.T, file []byte, fields ...string) (rows [][]string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "port.pcapng")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"-r", name, "--disable-heuristic", "rpcrdma_infiniband", "--disable-heuristic", "mellanox_eoib", "--disable-heuristic", "eth_over_ib",
		"-T", "fields", "-E", "separator=|", "-E", "occurrence=f",
	}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	out, err := exec.Command("tshark", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if len(f) != len(fields) {
			t.Fatalf("tshark printed %q: %d columns, want %d", line, len(f), len(fields))
		}
		rows = append(rows, f)
	}
	if len(rows) == 0 {
		t.Fatal(fmt.Errorf("tshark read nothing of %d bytes", len(file)))
	}
	return rows
}
