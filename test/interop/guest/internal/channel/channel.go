// Package channel is the conversation between the harness and the agent inside a guest: one TCP connection a
// request, framed both ways. It owns the formats only; who dials, listens or runs programs is elsewhere.
//
//	host  → guest   Request, then for OpRun: Stdin (empty = end of input), Signal; for OpWrite: Data (empty = end)
//	guest → host    for OpRun: Stdout, Stderr …; for OpRead: Data …; and always exactly one Done as the last frame
//
// A connection that the host closes before Done kills the command with everything in its session.
package channel

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Port is the TCP port on which the agent listens.
const Port = 7000

// MaxPayload is the largest payload of one frame, in bytes.
const MaxPayload = 1 << 20

// Kind says what a frame carries.
type Kind byte

// The kinds of frame.
const (
	KindRequest Kind = iota + 1 // JSON of Request
	KindStdin                   // bytes for the command; empty: end of input
	KindSignal                  // one byte, the signal's number, for the command's session
	KindData                    // bytes of a file; empty: end of file
	KindStdout                  // bytes that the command wrote
	KindStderr                  // bytes that the command wrote
	KindDone                    // JSON of Done
)

// Op names what a request asks for.
type Op string

// The requests.
const (
	OpRun    Op = "run"    // Command through /bin/sh
	OpRead   Op = "read"   // the file Path
	OpWrite  Op = "write"  // the file Path with Mode
	OpListen Op = "listen" // returns once something listens on TCP Port
	OpPing   Op = "ping"   // returns at once
)

// Request is the first frame of a connection.
type Request struct {
	Op      Op     `json:"op"`
	Command string `json:"command,omitempty"`
	Path    string `json:"path,omitempty"`
	Mode    uint32 `json:"mode,omitempty"` // permission bits
	Port    uint16 `json:"port,omitempty"`
}

// Done is the last frame of a connection.
type Done struct {
	Exit   int    `json:"exit"`             // the command's exit status, 128+n when signal n ended it
	Signal int    `json:"signal,omitempty"` // the signal that ended it, or 0
	Err    string `json:"err,omitempty"`    // why the request could not be carried out
}

// Writer writes frames; its methods are safe for concurrent use.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewWriter returns a Writer on w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Frame writes one frame; p is borrowed and must not exceed MaxPayload.
func (w *Writer) Frame(k Kind, p []byte) error {
	if len(p) > MaxPayload {
		return fmt.Errorf("channel: frame of %d bytes, the limit is %d", len(p), MaxPayload)
	}
	b := make([]byte, 5, 5+len(p))
	b[0] = byte(k)
	binary.BigEndian.PutUint32(b[1:], uint32(len(p)))
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.w.Write(append(b, p...))
	return err
}

// JSON writes v as the payload of one frame.
func (w *Writer) JSON(k Kind, v any) error {
	p, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.Frame(k, p)
}

// Stream returns an io.Writer that sends what is written to it as frames of kind k. It never sends an empty frame.
func (w *Writer) Stream(k Kind) io.Writer { return stream{w, k} }

type stream struct {
	w *Writer
	k Kind
}

func (s stream) Write(p []byte) (int, error) {
	for n := 0; n < len(p); {
		part := p[n:min(len(p), n+64<<10)]
		if err := s.w.Frame(s.k, part); err != nil {
			return n, err
		}
		n += len(part)
	}
	return len(p), nil
}

// Read returns the next frame. The payload is the caller's to keep. A connection that ends between two frames gives io.EOF.
func Read(r io.Reader) (Kind, []byte, error) {
	var h [5]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(h[1:])
	if n > MaxPayload {
		return 0, nil, fmt.Errorf("channel: frame of %d bytes, the limit is %d", n, MaxPayload)
	}
	p := make([]byte, n)
	if _, err := io.ReadFull(r, p); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return Kind(h[0]), p, nil
}
