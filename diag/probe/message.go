package probe

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ControlPort is where a listener listens: TCP for the control channel, UDP for
// the packets that show whether UDP passes on another port than 4791.
const ControlPort = 14791

// protocol is the version of the control channel. Both ends must have the
// same.
const protocol = 1

// Limits of the control channel.
const (
	maxFrame    = 1 << 20 // bytes of one frame
	maxBatch    = 1024    // probes of one request, and sequence numbers of one report
	maxPaths    = 16
	maxInterval = 100 * time.Millisecond
	maxBatchFor = 30 * time.Second
	maxWait     = 10 * time.Second
	maxText     = 256 // bytes of a string that is shown
	maxCopies   = 1 << 16
	maxInstant  = 1 << 62 // ns since 1970: the year 2116
)

// request is what the probing end asks. Op is "hello", "clock", "send" or
// "report"; a listener answers each with one response.
type request struct {
	Op      string `json:"op"`
	Version int    `json:"version,omitempty"` // hello

	// send: the listener sends these to UDP 4791 of the control connection's
	// other end. The frame is at least as long as all of them together; it is
	// filled with spaces.
	Probes     []Probe  `json:"probes,omitempty"`
	Ports      []uint16 `json:"ports,omitempty"` // source port by path
	IntervalNs int64    `json:"interval_ns,omitempty"`

	// report: what was heard of n sequence numbers from first on. The answer
	// comes when want of them are there or the time has passed.
	First  uint32 `json:"first,omitempty"`
	N      int    `json:"n,omitempty"`
	Want   int    `json:"want,omitempty"`
	WaitNs int64  `json:"wait_ns,omitempty"`
}

// response is what a listener answers. Err alone says that it refuses.
type response struct {
	Err string `json:"err,omitempty"`

	Token string `json:"token,omitempty"` // hello: 32 hex digits
	Host  *Host  `json:"host,omitempty"`  // hello
	// hello: the two ends of the control connection as the listener sees them.
	// They are others than those of the probing end where addresses are
	// translated.
	Peer string `json:"peer,omitempty"`
	Own  string `json:"own,omitempty"`

	HeardNs    int64 `json:"heard_ns,omitempty"` // clock: the request came
	AnsweredNs int64 `json:"answered_ns,omitempty"`

	Sent      []Sent     `json:"sent,omitempty"`    // send
	Notices   []Notice   `json:"notices,omitempty"` // send, report: all ICMP errors so far
	Sightings []Sighting `json:"sightings,omitempty"`
	Strangers int        `json:"strangers,omitempty"` // report: packets with the token from other addresses
	Witnesses int        `json:"witnesses,omitempty"` // report: packets to the control port
	// report: packets that the listener's own socket dropped since the hello.
	Overrun int `json:"overrun,omitempty"`
}

// Host is what one end is and how it hears. Texts are at most 256 bytes.
type Host struct {
	Name       string   `json:"name,omitempty"`
	Version    string   `json:"version,omitempty"`
	Interface  string   `json:"interface,omitempty"`   // that has the address
	MTU        int      `json:"mtu,omitempty"`         // of the interface, in bytes
	Socket     bool     `json:"socket"`                // a UDP socket listens on the port
	SocketWhy  string   `json:"socket_why,omitempty"`  // why not
	Capture    bool     `json:"capture"`               // a packet socket listens
	CaptureWhy string   `json:"capture_why,omitempty"` // why not
	Devices    []Device `json:"devices,omitempty"`     // RDMA devices that have the address as GID
}

// Device is an RDMA device of a host.
type Device struct {
	Name     string `json:"name"`
	Hardware bool   `json:"hardware"` // may take packets before the kernel sees them
}

// writeFrame writes v as one frame, filled with spaces to at least n bytes.
func writeFrame(w io.Writer, v any, n int) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	size := max(len(body), n)
	if size > maxFrame {
		return fmt.Errorf("control frame: %d bytes, at most %d", size, maxFrame)
	}
	b := make([]byte, 4+size)
	binary.BigEndian.PutUint32(b, uint32(size))
	for i := 4 + copy(b[4:], body); i < len(b); i++ {
		b[i] = ' '
	}
	_, err = w.Write(b)
	return err
}

// readFrame reads one frame.
func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return nil, fmt.Errorf("control frame: %d bytes, at most %d: is this a probe's control channel?", n, maxFrame)
	}
	// What is announced is not believed: memory grows with what comes.
	b, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && len(b) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// parseRequest reads the body of a frame and checks all of it.
func parseRequest(b []byte) (*request, error) {
	var r request
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, errors.New("control request: no JSON that is understood: " + shown(err.Error()))
	}
	switch r.Op {
	case "hello":
		if r.Version != protocol {
			return nil, fmt.Errorf("control request: version %d, this listener speaks %d: use the same verbena on both hosts", r.Version, protocol)
		}
	case "clock":
	case "send":
		return &r, r.checkSend(len(b))
	case "report":
		if r.N < 0 || r.N > maxBatch || r.Want < 0 || r.Want > maxBatch {
			return nil, fmt.Errorf("control request: report of %d, wanting %d, at most %d", r.N, r.Want, maxBatch)
		}
		if r.WaitNs < 0 || r.WaitNs > int64(maxWait) {
			return nil, fmt.Errorf("control request: wait of %d ns, at most %d", r.WaitNs, maxWait)
		}
	default:
		return nil, fmt.Errorf("control request: operation %.32q is not known", r.Op)
	}
	return &r, nil
}

func (r *request) checkSend(frame int) error {
	if len(r.Probes) > maxBatch {
		return fmt.Errorf("control request: %d probes, at most %d", len(r.Probes), maxBatch)
	}
	if len(r.Ports) == 0 || len(r.Ports) > maxPaths {
		return fmt.Errorf("control request: %d source ports, 1 to %d", len(r.Ports), maxPaths)
	}
	for _, p := range r.Ports {
		if p < firstPort {
			return fmt.Errorf("control request: source port %d, at least %d", p, firstPort)
		}
	}
	if r.IntervalNs < 0 || r.IntervalNs > int64(maxInterval) || r.IntervalNs*int64(len(r.Probes)) > int64(maxBatchFor) {
		return fmt.Errorf("control request: interval of %d ns for %d probes, at most %v each and %v in all", r.IntervalNs, len(r.Probes), maxInterval, maxBatchFor)
	}
	total := 0
	for i, p := range r.Probes {
		if p.Size < MinSize || p.Size > MaxSize || p.Size%4 != 0 {
			return fmt.Errorf("control request: probe %d has %d bytes, %d to %d in steps of 4", i, p.Size, MinSize, MaxSize)
		}
		if int(p.Path) >= len(r.Ports) {
			return fmt.Errorf("control request: probe %d is for path %d of %d", i, p.Path, len(r.Ports))
		}
		total += p.Size
	}
	if total > frame {
		return fmt.Errorf("control request: asks for %d bytes with a frame of %d: no more is sent than was received", total, frame)
	}
	return nil
}

// parseResponse reads the body of a frame; what is out of bounds is an error,
// and texts are made fit to be shown.
func parseResponse(b []byte) (*response, error) {
	var r response
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, errors.New("control response: no JSON that is understood: " + shown(err.Error()))
	}
	if r.Err != "" {
		return nil, errors.New("the listener refuses: " + shown(r.Err))
	}
	if len(r.Sent) > maxBatch || len(r.Sightings) > maxBatch || len(r.Notices) > maxNotices || r.Strangers < 0 || r.Witnesses < 0 || r.Overrun < 0 {
		return nil, fmt.Errorf("control response: %d sent, %d seen, %d notices: more than was asked for", len(r.Sent), len(r.Sightings), len(r.Notices))
	}
	for _, s := range []string{r.Peer, r.Own} {
		if a, err := netip.ParseAddr(s); s != "" && (err != nil || a.Zone() != "") {
			return nil, fmt.Errorf("control response: %.64q is no address", s)
		}
	}
	for i := range r.Sent {
		if at := r.Sent[i].At; at < 0 || at > maxInstant {
			return nil, fmt.Errorf("control response: packet %d sent at %d ns since 1970", r.Sent[i].Seq, at)
		}
		r.Sent[i].Err = errnoText(r.Sent[i].Err)
	}
	for i := range r.Sightings {
		g := &r.Sightings[i]
		if a, err := netip.ParseAddr(g.From); g.From != "" && (err != nil || a.Zone() != "") {
			return nil, fmt.Errorf("control response: %.64q is no address", g.From)
		}
		if g.At < 0 || g.At > maxInstant {
			return nil, fmt.Errorf("control response: packet %d seen at %d ns since 1970", g.Seq, g.At)
		}
		if g.Size < 0 || g.Size > 1<<16 || g.Cut < 0 || g.Socket < 0 || g.Socket > maxCopies || g.Capture < 0 || g.Capture > maxCopies {
			return nil, fmt.Errorf("control response: packet %d of %d bytes, seen %d and %d times", g.Seq, g.Size, g.Socket, g.Capture)
		}
	}
	for i := range r.Notices {
		n := &r.Notices[i]
		if !n.From.IsValid() || n.Count < 1 || n.Count > 1<<30 || n.MTU < 0 || n.MTU > 1<<16 {
			return nil, fmt.Errorf("control response: %d ICMP errors from %v with MTU %d", n.Count, n.From.IsValid(), n.MTU)
		}
		// A zone is any text, and means nothing here.
		n.What, n.From = shown(n.What), n.From.WithZone("")
	}
	if h := r.Host; h != nil {
		if len(h.Devices) > maxNotices || h.MTU < 0 {
			return nil, fmt.Errorf("control response: %d devices, MTU %d", len(h.Devices), h.MTU)
		}
		for _, s := range []*string{&h.Name, &h.Version, &h.Interface, &h.SocketWhy, &h.CaptureWhy} {
			*s = shown(*s)
		}
		for i := range h.Devices {
			h.Devices[i].Name = shown(h.Devices[i].Name)
		}
	}
	return &r, nil
}

// shown makes a peer's text fit for a terminal: bounded, printable.
func shown(s string) string {
	out := make([]byte, 0, min(len(s), maxText))
	for _, c := range s {
		if !strconv.IsPrint(c) || c == utf8.RuneError {
			c = '?'
		}
		if len(out)+utf8.RuneLen(c) > maxText {
			break
		}
		out = utf8.AppendRune(out, c)
	}
	return string(out)
}

// errnoText is the name of an errno as a peer tells it; what is none is "?".
func errnoText(s string) string {
	if len(s) > 20 || strings.ContainsFunc(s, func(c rune) bool { return (c < 'A' || c > 'Z') && (c < '0' || c > '9') }) {
		return "?"
	}
	return s
}

func parseToken(s string) (t token, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(t) {
		return t, fmt.Errorf("control response: token %.40q, want %d hex digits", s, 2*len(t))
	}
	return token(b), nil
}
