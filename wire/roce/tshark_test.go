package roce

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/wire"
)

// tshark reads every opcode in every envelope as we meant it. It does not know
// 0x81, the CNP, whose opcode it shows all the same, and it does not check
// ICRCs.
func TestTsharkReadsWhatWeEncode(t *testing.T) {
	judge.Need(t, "tshark")
	le := binary.LittleEndian
	file := le.AppendUint32(nil, 0xA1B2C3D4)
	file = append(file, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	file = le.AppendUint32(file, 65535)
	file = le.AppendUint32(file, 1) // Ethernet
	var want []string
	for _, e := range envelopes() {
		wire.Opcodes(func(info *wire.OpInfo) {
			for n := range 4 {
				p := packet(info.Op, 40+n)
				if n != 0 && p.Payload == nil {
					continue
				}
				b := make([]byte, e.FrameLen(&p))
				e.Encode(b, &p)
				file = append(file, make([]byte, 8)...)
				file = le.AppendUint32(file, uint32(len(b)))
				file = le.AppendUint32(file, uint32(len(b)))
				file = append(file, b...)
				want = append(want, strings.Join([]string{
					strconv.Itoa(int(p.Op)), strconv.Itoa(int(wire.PadFor(len(p.Payload)))), "0x123456", "11259375", "",
				}, "|"))
			}
		})
	}
	name := filepath.Join(t.TempDir(), "ours.pcap")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-r", name, "--disable-heuristic", "rpcrdma_infiniband", "-T", "fields", "-E", "separator=|", "-E", "occurrence=f"}
	for _, f := range []string{"bth.opcode", "bth.padcnt", "bth.destqp", "bth.psn"} {
		args = append(args, "-e", "infiniband."+f)
	}
	out, err := exec.Command("tshark", append(args, "-e", "_ws.malformed")...).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d frames read, %d written", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("frame %d: %s, want %s", i+1, got[i], fmt.Sprint(want[i]))
		}
	}
}
