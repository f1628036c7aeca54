package rc_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
)

// A transcript (testdata/*.txt) is a protocol rule as a conversation. Its first
// line is a comment that says the rule; lines "# rule: name" name the rules that
// it shows (see rules_test.go). Lines that begin with ">" are commands, the lines
// below one are what it makes happen. go test -run Transcripts -update rewrites
// those.
//
//	> connect mtu=1024 psna=fffffe rd=1 timeout=14 retry=7 access=read,write
//	      two ends A and B in RTS. Also psnb, rnr, rnrtimer, mtub, rdb (B's own),
//	      sigall=no, credits, lateack, window, mem
//	> post A write id=1 len=600 [at=0 to=0 imm=7 fence solicited unsignaled inline
//	      lkey=bad rkey=bad sges=3 cmp=1 add=2]
//	      post A write tag=7: under the key of B's window with that tag
//	> mw A type=2B       A gets a memory window; post A bind tag=7 at=0 len=600
//	      access=write [lkey=bad] binds it; post A local-inv inv=7, post B send-inv inv=7
//	      take that back (inv=mr: the key of the region)
//	> recv B id=1 len=600 [at=0 lkey=bad]
//	> send A [n]         A sends what it has to, or at most n packets; they wait
//	> deliver [1 3]      deliver waiting packets, all or by number, in that order
//	> drop 2             lose them
//	> dup 2              deliver a copy
//	> flow               both send and deliver until neither has anything
//	> flow drop=3,5      the same, with the packets of those numbers lost
//	> advance 10us       time passes; timers fire
//	> advance A          … up to the next instant of A
//	> timers             when something happens next
//	> modify A state=ERR [access=read …]
//	> state              the state of both
//	> bytes A at=0 to=0 len=600    compare A's bytes with B's
//	> word B at=0        the 64-bit number there; word B at=0 set=7
//	> unregister B       B's region goes; register B access=remote-read: another
//	> query A            the PSNs
//	> inject B op=0x07 psn=5 [len=256 va=+0 rkey=bad dlen=600 ack sol syn=0x60 …]
//	      a packet made by hand arrives at B
var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

func TestTranscripts(t *testing.T) {
	for _, file := range transcripts(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			old, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := newPlay(t).run(string(old))
			if got == string(old) {
				return
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s (go test -run Transcripts -update rewrites it):\n%s", file, diff(string(old), got))
		})
	}
}

func transcripts(t *testing.T) []string {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	return slices.DeleteFunc(files, func(f string) bool { return filepath.Base(f) == "rules.txt" })
}

// diff shows where two texts part.
func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			end := func(l []string) string { return strings.Join(l[i:min(len(l), i+12)], "\n    ") }
			return fmt.Sprintf("line %d\n  want\n    %s\n  got\n    %s", i+1, end(w), end(g))
		}
	}
	return "one is longer"
}

// play is a transcript under way.
type play struct {
	t     *testing.T
	a, b  *node
	now   clock.Time
	num   int
	air   []airborne
	out   []string
	seen  map[string]bool // what the transcript showed: "status/…", "nak/…", "state/…"
	state [2]ib.QPState
}

type airborne struct {
	num int
	to  *node
	p   packet
}

func newPlay(t *testing.T) *play { return &play{t: t, seen: map[string]bool{}} }

// run plays the text and returns it with what really happened.
func (pl *play) run(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			b.WriteString(line + "\n")
		case strings.HasPrefix(line, ">"):
			b.WriteString(line + "\n")
			pl.out = nil
			pl.do(strings.Fields(line[1:]))
			pl.watch()
			for _, l := range pl.out {
				b.WriteString("  " + l + "\n")
			}
		}
	}
	return b.String()
}

func (pl *play) say(format string, args ...any) {
	pl.out = append(pl.out, fmt.Sprintf(format, args...))
}

// watch reports states that have changed.
func (pl *play) watch() {
	for i, n := range []*node{pl.a, pl.b} {
		if n == nil {
			continue
		}
		if s := n.eng.State(); s != pl.state[i] {
			pl.seen["state/"+pl.state[i].String()+"-"+s.String()] = true
			pl.say("%s is in %v", n.name, s)
			pl.state[i] = s
		}
	}
}
