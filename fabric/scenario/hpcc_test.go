package scenario

import (
	"errors"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// The published configuration of DCQCN at 100 Gb/s, in that file's form.
const hpccConfig = `ENABLE_QCN 1
USE_DYNAMIC_PFC_THRESHOLD 1

PACKET_PAYLOAD_SIZE 1000

TOPOLOGY_FILE mix/topology.txt
FLOW_FILE mix/flow.txt {input file}
TRACE_FILE mix/trace.txt
FCT_OUTPUT_FILE mix/fct.txt

SIMULATOR_STOP_TIME 4.00

CC_MODE 1
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
CLAMP_TARGET_RATE 0
RP_TIMER 300
EWMA_GAIN 0.00390625
FAST_RECOVERY_TIMES 1
RATE_AI 20Mb/s
RATE_HAI 200Mb/s
MIN_RATE 1000Mb/s

ERROR_RATE_PER_LINK 0.0000
L2_ACK_INTERVAL 1
L2_BACK_TO_ZERO 0
HAS_WIN 0
LINK_DOWN 0 0 0
KMAX_MAP 2 100000000000 1600 400000000000 6400
KMIN_MAP 2 100000000000 400 400000000000 1600
PMAX_MAP 2 100000000000 0.20 400000000000 0.20
BUFFER_SIZE 32
QLEN_MON_START 2000000000
`

func TestReadHPCC(t *testing.T) {
	s, w, err := ReadHPCC("config.txt", []byte(hpccConfig))
	if err != nil || len(w) != 0 {
		t.Fatal(err, w)
	}
	if s.Topology.Kind != FromFile || s.Topology.File != "mix/topology.txt" || s.Workload[0].File != "mix/flow.txt" ||
		s.Workload[0].Kind != Trace || s.Duration != 4*sim.Second {
		t.Errorf("%s", s.YAML())
	}
	// The packet of that simulator: 1,048 bytes for 1,000.
	if s.Packet.FullFrame() != 1048 || s.Packet.FullPayload() != 1000 || s.Packet.LeastFrame() != 60 || s.Packet.GapBytes() != 0 {
		t.Errorf("%+v", s.Packet)
	}
	b := s.Switch.Buffer
	if b.Total != 32<<20 || b.Alpha != One/8 || !b.ScaleAlpha || b.Headroom.Rule != HeadroomHPCC || b.Reserved != 4096 || b.XONOffset != 3072 {
		t.Errorf("%+v", b)
	}
	if m, ok := s.Switch.ECN.For(3, 400*sim.Gbps); !ok || m != (Mark{1600e3, 6400e3, 858993459}) {
		t.Errorf("%+v", m)
	}
	p, err := s.Host.DCQCN.Params()
	if err != nil || p.RPGAIRate != 20e6 || p.RPGHAIRate != 200e6 || p.RPGMinRate != 1e9 || p.DCETCPG.String() != "1/256" ||
		p.DCETCPRTT.Microseconds() != 1 || p.RateReduceMonitorPeriod.Microseconds() != 4 || p.RPGTimeReset.Microseconds() != 300 ||
		p.RPGThreshold != 1 || p.ClampTgtRate || p.RPGByteReset != 0 {
		t.Errorf("%+v %v", p, err)
	}
	// What it became is a file of ours.
	again := mustParse(t, s.YAML())
	if again.Packet != s.Packet || again.Switch.Buffer.Total != s.Switch.Buffer.Total {
		t.Error("its file is another scenario")
	}
}

func TestReadHPCCWarnings(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"CC_MODE 1", "CC_MODE 3", "config.txt:13:1: warning: CC_MODE: 3 (HPCC) is not simulated"},
		{"HAS_WIN 0", "HAS_WIN 1", "config.txt:27:1: warning: HAS_WIN: its windows are not simulated"},
		{"LINK_DOWN 0 0 0", "LINK_DOWN 100 32 36", "config.txt:28:1: warning: LINK_DOWN: taken as the link of switches sw32-sw36"},
		{"L2_BACK_TO_ZERO 0", "L2_BACK_TO_ZERO 1", "config.txt:26:1: warning: L2_BACK_TO_ZERO: a loss goes back to the lost packet"},
		{"QLEN_MON_START 2000000000", "CONWEAVE_REPLY_TIMEOUT_EXTRA 4", "config.txt:33:1: warning: CONWEAVE_REPLY_TIMEOUT_EXTRA: is not known here and does nothing"},
	} {
		s, w, err := ReadHPCC("config.txt", []byte(strings.Replace(hpccConfig, c.old, c.new, 1)))
		if err != nil || len(w) != 1 || !strings.HasPrefix(w[0].String(), c.want) {
			t.Errorf("%s: %v %v", c.new, w, err)
			continue
		}
		switch c.new {
		case "CC_MODE 3":
			if !s.Host.DCQCN.Off() {
				t.Error("DCQCN is not off")
			}
		case "LINK_DOWN 100 32 36":
			if f := s.Faults[0]; f.At != 2*sim.Second+100*sim.Microsecond || f.Kind != LinkDown {
				t.Errorf("%+v", f)
			}
		}
	}
	// The parent of that program sends CNPs.
	s, _, err := ReadHPCC("config.txt", []byte(hpccConfig+"CNP_INTERVAL 50\nBYTE_COUNTER 300000000\n"))
	if err != nil {
		t.Fatal(err)
	}
	if p, err := s.Host.DCQCN.Params(); err != nil || p.MinTimeBetweenCNPs.Microseconds() != 50 || p.RPGByteReset != 300e6 || p.Notify != 0 {
		t.Errorf("%+v %v", p, err)
	}
}

func TestReadHPCCErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{hpccConfig, "", "f:1:1: no line of the form KEY VALUE"},
		{"TOPOLOGY_FILE mix/topology.txt", "", "f:1:1: TOPOLOGY_FILE: missing"},
		{"TOPOLOGY_FILE mix/topology.txt", "TOPOLOGY_FILE", "f:6:1: TOPOLOGY_FILE: 0 values; it has 1"},
		{"CC_MODE 1", "CC_MODE one", `f:13:1: CC_MODE: "one" is not a whole number from 0 to 1000`},
		{"CC_MODE 1", "CC_MOD 1", "f:13:1: CC_MOD: unknown key; did you mean CC_MODE?"},
		{"CC_MODE 1", "RP_TIMER 1", "f:17:1: RP_TIMER: given twice; first in line 13"},
		{"ENABLE_QCN 1", "ENABLE_QCN 2", `f:1:1: ENABLE_QCN: "2" is not 0 or 1`},
		{"BUFFER_SIZE 32", "BUFFER_SIZE -1", `f:32:1: BUFFER_SIZE: "-1" is not a whole number from 1 to 131072`},
		{"RATE_AI 20Mb/s", "RATE_AI 20", `f:20:1: RATE_AI: "20" has no unit: give bps, Kbps, Mbps, Gbps or Tbps, as in 100Gbps`},
		{"EWMA_GAIN 0.00390625", "EWMA_GAIN 2", `f:18:1: EWMA_GAIN: "2" is not a gain above 0, up to 1`},
		{"EWMA_GAIN 0.00390625", "EWMA_GAIN 0.00001", `f:18:1: host.dcqcn.dce_tcp_g: 1/65536 is not allowed: 1/4096 to 1`},
		{"SIMULATOR_STOP_TIME 4.00", "SIMULATOR_STOP_TIME 0", "f:11:1: SIMULATOR_STOP_TIME: 0 is no time at all"},
		{"ERROR_RATE_PER_LINK 0.0000", "ERROR_RATE_PER_LINK 3", `f:24:1: ERROR_RATE_PER_LINK: "3" is not a share from 0 to 1`},
		{"KMIN_MAP 2", "KMIN_MAP 3", "f:30:1: KMIN_MAP: 4 values behind the count 3; there must be 6"},
		{"KMIN_MAP 2 100000000000", "KMIN_MAP 2 100000000001", "f:31:1: KMIN_MAP: no value for 100000000000 bit/s, which KMAX_MAP has"},
		{"KMIN_MAP 2 100000000000 400", "KMIN_MAP 2 100000000000 4000", "f:31:1: KMIN_MAP: 4MB at 100000000000 bit/s is above Kmax, 1.6MB"},
		{"PMAX_MAP 2 100000000000 0.20", "PMAX_MAP 2 100000000000 20", `f:31:1: PMAX_MAP: "20" is not a probability`},
		{"PACKET_PAYLOAD_SIZE 1000", "PACKET_PAYLOAD_SIZE 9000", `f:4:1: PACKET_PAYLOAD_SIZE: "9000" is not a whole number from 1 to 4096`},
		{"LINK_DOWN 0 0 0", "LINK_DOWN 0 0", "f:28:1: LINK_DOWN: 2 values; it has 3"},
	} {
		_, _, err := ReadHPCC("f", []byte(strings.Replace(hpccConfig, c.old, c.new, 1)))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", c.new, err, c.want)
		}
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%T", err)
		}
	}
}
