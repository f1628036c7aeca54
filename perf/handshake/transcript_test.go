package handshake

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
)

// transcript is a conversation between two of Debian's programs, as
// internal/record wrote it.
type transcript struct {
	args   []string
	chunks [2][][]byte // of the client and of the server
}

func readTranscript(t *testing.T, file string) transcript {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var tr transcript
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "#":
			tr.args = strings.Fields(rest)
		case "C", "S":
			s, err := strconv.Unquote(rest)
			if err != nil {
				t.Fatalf("%s: %s: %v", file, line, err)
			}
			tr.chunks[strings.Index("CS", kind)] = append(tr.chunks[strings.Index("CS", kind)], []byte(s))
		default:
			t.Fatalf("%s: line %q", file, line)
		}
	}
	return tr
}

func (tr *transcript) has(opt string) bool {
	for _, a := range tr.args {
		if a == opt {
			return true
		}
	}
	return false
}

func (tr *transcript) arg(opt, otherwise string) string {
	for i, a := range tr.args {
		if a == opt {
			return tr.args[i+1]
		}
	}
	return otherwise
}

// steps returns the steps of the program from the first key on, as the plan
// and the options have them.
func (tr *transcript) steps(p Plan, v Verb, latency bool) []string {
	qps, _ := strconv.Atoi(tr.arg("-q", "1"))
	keys := strings.Repeat("key ", qps)
	var s string
	if p.FirstSync {
		s += "key "
	}
	s += keys
	if p.EarlySync {
		s += "key "
	}
	s += keys
	if !p.EarlySync {
		s += "key "
	}
	sizes := 1
	if tr.has("-a") {
		sizes = 23
	}
	both, over := tr.has("-b"), tr.has("-D")
	for range sizes {
		if p.SizeSync || both {
			s += "key "
		}
		if both && tr.has("-a") && v != Send {
			s += "key "
		}
		if both && p.Reports && (v != Send || !over) {
			s += "report "
		}
		if v == Send && tr.has("-a") && !latency {
			s += "key "
		}
	}
	if p.Reports && v != Send && !both {
		s += "key report "
	}
	if p.Done {
		s += "done"
	}
	return strings.Fields(s)
}

// TestTranscripts plays each end of every recorded conversation against the
// recorded words of the other, and wants its own recorded words: versions,
// sizes and order of the steps, and every byte of them.
func TestTranscripts(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) < 25 {
		t.Fatalf("only %d transcripts", len(files))
	}
	for _, f := range files {
		tr := readTranscript(t, f)
		for _, role := range []Role{Client, Server} {
			t.Run(fmt.Sprintf("%s/%v", strings.TrimSuffix(filepath.Base(f), ".txt"), role), func(t *testing.T) {
				mine, theirs := tr.chunks[role], tr.chunks[1-role]
				rec := &recording{Reader: bytes.NewReader(bytes.Join(theirs, nil))}
				var err error
				if strings.HasSuffix(tr.args[0], "pingpong") {
					err = playPingpong(rec, role, mine)
				} else {
					err = play(rec, role, &tr, mine)
				}
				if err != nil {
					t.Fatal(err)
				}
				if want := bytes.Join(mine, nil); !bytes.Equal(rec.out.Bytes(), want) {
					t.Errorf("said %q\nwant %q", rec.out.Bytes(), want)
				}
				if rec.Len() > 0 && !onlyDone(rec) {
					t.Errorf("%d bytes of the peer were not read", rec.Len())
				}
			})
		}
	}
}

// onlyDone reports whether what is left is the word that nobody reads.
func onlyDone(r *recording) bool { return r.Len() == len(pingpongDone) }

type recording struct {
	*bytes.Reader
	out bytes.Buffer
}

func (r *recording) Write(b []byte) (int, error) { return r.out.Write(b) }

func playPingpong(rec *recording, role Role, mine [][]byte) error {
	a, err := ParseAddress(mine[0])
	if err != nil {
		return err
	}
	if role == Client {
		_, err = PingpongClient(rec, a)
	} else {
		_, err = PingpongServer(rec, a, func(Address) error { return nil })
	}
	return err
}

func play(rec *recording, role Role, tr *transcript, mine [][]byte) error {
	names := map[string]Verb{"write": Write, "read": Read, "send": Send, "atomic": Atomic}
	parts := strings.Split(tr.args[0], "_")
	v, latency := names[parts[1]], parts[2] == "lat"
	mtu, err := parseMTU(mine[3])
	if err != nil {
		return err
	}
	s := NewSession(rec, role)
	h := Hello{MTU: mtu, CycleBuffer: int(binary.BigEndian.Uint32(mine[1])), CacheLine: int(binary.BigEndian.Uint32(mine[2]))}
	a, err := s.Open(h)
	if err != nil {
		return err
	}
	if want := tr.arg("-m", "4096"); want != fmt.Sprint(a.MTU.Bytes()) || a.MTU == ib.MTU(0) {
		return fmt.Errorf("agreed on MTU %v, want %s", a.MTU, want)
	}
	mine = slices.Clone(mine[4:])
	next := func(n int) ([]byte, error) {
		if len(mine) == 0 || len(mine[0]) < n {
			return nil, fmt.Errorf("the transcript has %q where %d bytes are due", mine[:min(1, len(mine))], n)
		}
		b := mine[0][:n]
		if mine[0] = mine[0][n:]; len(mine[0]) == 0 { // a read may have returned two messages
			mine = mine[1:]
		}
		return b, nil
	}
	for _, step := range tr.steps(PlanOf(v, latency), v, latency) {
		switch step {
		case "key":
			b, err := next(KeyGIDLen)
			if err != nil {
				return err
			}
			k, err := ParseKey(b)
			if err != nil {
				return err
			}
			if _, err := s.Keys([]Key{k}); err != nil {
				return err
			}
		case "report":
			var f [5]uint64
			for i := range f {
				b, err := next(reportLen)
				if err != nil {
					return err
				}
				f[i] = binary.BigEndian.Uint64(b)
			}
			r := Report{f[0], f[1], math.Float64frombits(f[2]), math.Float64frombits(f[3]), math.Float64frombits(f[4])}
			if _, err := s.Reports(r); err != nil {
				return err
			}
		case "done":
			b, err := next(KeyGIDLen)
			if err != nil {
				return err
			}
			k, err := ParseKey(b)
			if err != nil {
				return err
			}
			if _, err := next(len(pingpongDone)); err != nil {
				return err
			}
			return s.Done(k)
		}
	}
	if len(mine) > 0 {
		return fmt.Errorf("the transcript goes on with %q", mine[0])
	}
	return nil
}
