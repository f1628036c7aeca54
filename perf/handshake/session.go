package handshake

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"github.com/verbena-rdma/verbena/ib"
)

// Role is the side of the TCP connection: it decides who writes first.
type Role uint8

// The two sides.
const (
	Client Role = iota // connects, writes first
	Server             // listens, reads first
)

func (r Role) String() string {
	if r == Client {
		return "client"
	}
	return "server"
}

// Error is the failure of one step. It unwraps to its cause: [ErrFormat],
// an error of the connection, or one of the mismatches below.
type Error struct {
	Step string // "version", "key of QP 2 of 4", …
	Err  error
	Hint string // what to compare or try, "" if nothing is known
}

func (e *Error) Error() string {
	s := e.Step + ": " + e.Err.Error()
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// The mismatches that the two ends can have.
var (
	// ErrPeerClosed: the connection ended where a message was due.
	ErrPeerClosed = errors.New("peer closed the connection")
	// ErrNoGID: the peer addresses by LID, as perftest does on InfiniBand.
	ErrNoGID = errors.New("peer sent an address without a GID")
	// ErrGIDFamily: one end uses an IPv4 GID and the other an IPv6 GID.
	ErrGIDFamily = errors.New("GID families differ")
	// ErrOptions: both ends are ours and run different things.
	ErrOptions = errors.New("the two ends run different tests")
)

const sameOptions = "both ends must run the same program with the same options (compare -q, -b, -a, -D, -c)"

// Session is one perftest conversation. Its methods must be called in the
// order of the program's [Plan]; each blocks until the peer has come as far.
type Session struct {
	rw   io.ReadWriter
	role Role
	peer Version
	wbuf []byte
	rbuf []byte
	cm   bool
}

// OverCM makes the session one over a connection of the RDMA connection
// manager, as perftest's -R has it: keys are binary, and nothing follows the
// last synchronisation. Call it before Open.
func (s *Session) OverCM() { s.cm = true }

// NewSession returns a session over rw, which stays the caller's: deadlines
// and closing are his.
func NewSession(rw io.ReadWriter, role Role) *Session {
	return &Session{rw: rw, role: role}
}

// Hello is what one end brings into [Session.Open].
type Hello struct {
	MTU         ib.MTU // the largest that this end wants
	CycleBuffer int    // bytes; perftest: the page size
	CacheLine   int    // bytes
	// Extension tells a peer of ours what this end is about to run; nil keeps
	// the mark back, so that the peer sees a plain perftest.
	Extension *Extension
}

// Agreed is what [Session.Open] settled.
type Agreed struct {
	Peer        Version
	MTU         ib.MTU // the smaller of both
	CycleBuffer int    // the larger of both
	CacheLine   int    // the larger of both
	// Extension is what the peer runs; nil if it is not one of ours.
	Extension *Extension
}

// Extension is what two ends of this project tell each other beyond
// perftest's protocol: JSON behind a length of four bytes, big endian. Fields
// that a peer does not know are ignored.
type Extension struct {
	Test       string `json:"test"` // "write_bw"
	Connection string `json:"connection"`
	Size       uint64 `json:"size"` // bytes
	All        bool   `json:"all,omitempty"`
	Iters      uint64 `json:"iterations,omitempty"`
	Duration   int    `json:"duration_seconds,omitempty"`
	QPs        int    `json:"qps"`
	Both       bool   `json:"bidirectional,omitempty"`
	Atomic     string `json:"atomic,omitempty"`
	Verify     bool   `json:"verify"`
}

// jsonMost bounds what a peer can make us allocate, in bytes: a verdict about
// the most queue pairs that perftest allows has less.
const jsonMost = 1 << 19

// differences names each setting that must be equal and is not.
func (e *Extension) differences(o *Extension) string {
	var d string
	add := func(name string, mine, theirs any) {
		if mine != theirs {
			if d != "" {
				d += ", "
			}
			d += fmt.Sprintf("%s is %v here and %v there", name, mine, theirs)
		}
	}
	add("test", e.Test, o.Test)
	add("-c", e.Connection, o.Connection)
	add("-a", e.All, o.All)
	if e.All == o.All {
		add("-s", e.Size, o.Size)
	}
	add("-D", e.Duration, o.Duration)
	if e.Duration == o.Duration {
		add("-n", e.Iters, o.Iters)
	}
	add("-q", e.QPs, o.QPs)
	add("-b", e.Both, o.Both)
	add("-A", e.Atomic, o.Atomic)
	return d
}

// Verdict is what two ends of this project tell each other after a test.
type Verdict struct {
	// Sent counts this end's requests, one number a queue pair, so that the
	// peer knows what its memory must hold.
	Sent []uint64 `json:"sent,omitempty"`
	// Compared and Bad count bytes that this end compared with the pattern.
	Compared uint64 `json:"compared,omitempty"`
	Bad      uint64 `json:"bad,omitempty"`
	// Detail says where the first bad byte was.
	Detail string `json:"detail,omitempty"`
}

// Open exchanges versions, buffer geometry and the MTU.
func (s *Session) Open(h Hello) (Agreed, error) {
	v := Version{Text: ProtocolVersion}
	if h.Extension != nil {
		v.Ours = extensionVersion
	}
	b, err := s.exchange("version", v.Append(s.wbuf[:0]), VersionLen, "is the program on the other side one of perftest's?")
	if err != nil {
		return Agreed{}, err
	}
	if s.peer, err = ParseVersion(b); err != nil {
		return Agreed{}, &Error{Step: "version", Err: err}
	}
	a := Agreed{Peer: s.peer}
	if h.Extension != nil && s.peer.Ours != 0 {
		theirs := new(Extension)
		if err := s.exchangeJSON("options", h.Extension, theirs); err != nil {
			return Agreed{}, err
		}
		if d := h.Extension.differences(theirs); d != "" {
			return Agreed{}, &Error{Step: "options", Err: ErrOptions, Hint: d}
		}
		a.Extension = theirs
	}
	if a.CycleBuffer, err = s.larger("page size", h.CycleBuffer); err != nil {
		return Agreed{}, err
	}
	if a.CacheLine, err = s.larger("cache line size", h.CacheLine); err != nil {
		return Agreed{}, err
	}
	b, err = s.exchange("MTU", appendMTU(s.wbuf[:0], h.MTU), MTULen, "")
	if err != nil {
		return Agreed{}, err
	}
	m, err := parseMTU(b)
	if err != nil {
		return Agreed{}, &Error{Step: "MTU", Err: err}
	}
	a.MTU = min(m, h.MTU)
	return a, nil
}

// larger exchanges a size and returns the larger one.
func (s *Session) larger(step string, mine int) (int, error) {
	b, err := s.exchange(step, appendInt(s.wbuf[:0], mine), 4, "")
	if err != nil {
		return 0, err
	}
	v := binary.BigEndian.Uint32(b)
	const most = 1 << 24
	if v > most {
		return 0, &Error{Step: step, Err: fmt.Errorf("%w: %d bytes, the most is %d", ErrFormat, v, most)}
	}
	return max(mine, int(v)), nil
}

// Keys exchanges one key a queue pair, in order, and checks that both ends use
// GIDs of one family.
func (s *Session) Keys(mine []Key) ([]Key, error) {
	theirs := make([]Key, len(mine))
	for i := range mine {
		step := "address"
		if len(mine) > 1 {
			step = fmt.Sprintf("address of QP %d of %d", i+1, len(mine))
		}
		k, err := s.key(step, mine[i])
		if err != nil {
			return nil, err
		}
		if k.GID.Is4() != mine[i].GID.Is4() {
			return nil, &Error{
				Step: step, Err: ErrGIDFamily,
				Hint: fmt.Sprintf("%v here and %v there: choose rows of one family with -x on both ends (`verbena gid` and show_gids list them)", mine[i].GID.Addr(), k.GID.Addr()),
			}
		}
		theirs[i] = k
	}
	return theirs, nil
}

// Sync waits until the peer has come to the same point.
func (s *Session) Sync(mine Key) error {
	_, err := s.key("synchronisation", mine)
	return err
}

// Reports exchanges what the two ends measured.
func (s *Session) Reports(mine Report) (Report, error) {
	f, got := mine.fields(), [5]uint64{}
	for i, name := range []string{"size", "iterations", "peak", "average", "message rate"} {
		b, err := s.exchange("report of "+name, binary.BigEndian.AppendUint64(s.wbuf[:0], f[i]), reportLen, sameOptions)
		if err != nil {
			return Report{}, err
		}
		got[i] = binary.BigEndian.Uint64(b)
	}
	var r Report
	r.setFields(got)
	return r, nil
}

// Verdicts exchanges the outcome of verification. Only between two ends of
// ours; the server's check may use the client's verdict, so it is asked for
// its own after it has the client's.
func (s *Session) Verdicts(mine func(theirs Verdict) Verdict) (Verdict, error) {
	var theirs Verdict
	if s.role == Client {
		if err := s.writeJSON("verification", mine(Verdict{})); err != nil {
			return theirs, err
		}
		err := s.readJSON("verification", &theirs)
		return theirs, err
	}
	if err := s.readJSON("verification", &theirs); err != nil {
		return theirs, err
	}
	return theirs, s.writeJSON("verification", mine(theirs))
}

// Done is the last step: a synchronisation, then a word that nobody reads.
func (s *Session) Done(mine Key) error {
	if err := s.Sync(mine); err != nil {
		return err
	}
	if s.cm {
		return nil
	}
	// The peer may be gone already: it does not wait for this.
	_, _ = s.rw.Write(append(append(s.wbuf[:0], "done"...), 0))
	return nil
}

func (s *Session) key(step string, mine Key) (Key, error) {
	if s.cm {
		b, err := s.exchange(step, AppendKeyCM(s.wbuf[:0], mine), KeyCMLen, sameOptions)
		if err != nil {
			return Key{}, err
		}
		return ParseKeyCM(b)
	}
	b, err := s.exchange(step, AppendKey(s.wbuf[:0], mine, true), KeyGIDLen, sameOptions)
	if err != nil {
		return Key{}, err
	}
	k, err := ParseKey(b)
	if err != nil {
		return Key{}, &Error{Step: step, Err: err, Hint: sameOptions}
	}
	return k, nil
}

// exchange sends mine and returns n bytes of the peer, in the order of the
// role. The result is valid until the next call.
func (s *Session) exchange(step string, mine []byte, n int, hint string) ([]byte, error) {
	s.wbuf = mine[:0]
	s.rbuf = slices.Grow(s.rbuf[:0], n)[:n]
	if s.role == Client {
		if err := s.write(step, mine); err != nil {
			return nil, err
		}
		return s.rbuf, s.read(step, s.rbuf, hint)
	}
	if err := s.read(step, s.rbuf, hint); err != nil {
		return nil, err
	}
	return s.rbuf, s.write(step, mine)
}

func (s *Session) write(step string, b []byte) error {
	if _, err := s.rw.Write(b); err != nil {
		return &Error{Step: step, Err: cause(err)}
	}
	return nil
}

func (s *Session) read(step string, b []byte, hint string) error {
	// A key without a GID is shorter: do not wait for what will not come.
	if len(b) == KeyGIDLen {
		if _, err := io.ReadFull(s.rw, b[:KeyLen]); err != nil {
			return &Error{Step: step, Err: cause(err), Hint: hint}
		}
		if b[KeyLen-1] == 0 {
			if _, err := ParseKey(b[:KeyLen]); err == nil {
				return &Error{Step: step, Err: ErrNoGID, Hint: "give it a GID index with -x"}
			}
		}
		b = b[KeyLen:]
	}
	if _, err := io.ReadFull(s.rw, b); err != nil {
		return &Error{Step: step, Err: cause(err), Hint: hint}
	}
	return nil
}

// cause turns the errors of a connection into one clear word.
func cause(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return ErrPeerClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("no answer from the peer: %w", os.ErrDeadlineExceeded)
	}
	return err
}

func (s *Session) exchangeJSON(step string, mine, theirs any) error {
	if s.role == Client {
		if err := s.writeJSON(step, mine); err != nil {
			return err
		}
		return s.readJSON(step, theirs)
	}
	if err := s.readJSON(step, theirs); err != nil {
		return err
	}
	return s.writeJSON(step, mine)
}

func (s *Session) writeJSON(step string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return &Error{Step: step, Err: err}
	}
	s.wbuf = append(binary.BigEndian.AppendUint32(s.wbuf[:0], uint32(len(b))), b...)
	return s.write(step, s.wbuf)
}

func (s *Session) readJSON(step string, v any) error {
	var n [4]byte
	if err := s.read(step, n[:], ""); err != nil {
		return err
	}
	l := binary.BigEndian.Uint32(n[:])
	if l > jsonMost {
		return &Error{Step: step, Err: fmt.Errorf("%w: %d bytes", ErrFormat, l)}
	}
	s.rbuf = slices.Grow(s.rbuf[:0], int(l))[:l]
	if err := s.read(step, s.rbuf, ""); err != nil {
		return err
	}
	if err := json.Unmarshal(s.rbuf, v); err != nil {
		return &Error{Step: step, Err: fmt.Errorf("%w: %s", ErrFormat, quote(s.rbuf))}
	}
	return nil
}
