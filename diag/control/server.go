package control

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// served is how many connections are served at a time; others wait in the kernel.
const served = 4

// Server is the control socket of one device.
type Server struct {
	l      *listener
	name   string
	report func(Want) snapshot.Device
	opened time.Time
	comm   string
	slots  chan struct{} // one element for each connection that is served
	quit   chan struct{}
	done   chan struct{}

	mu     sync.Mutex
	closed bool
	conns  map[*os.File]struct{}
	serve  sync.WaitGroup
}

// Listen opens the control socket of a device in the network namespace of the calling
// thread. report is called for each request, by several goroutines at a time; it must
// not wait for whoever calls Close. The error matches errors.ErrUnsupported where
// there are no such sockets. The caller closes the server before the device.
func Listen(report func(Want) snapshot.Device) (*Server, error) {
	if !supported {
		return nil, fmt.Errorf("control socket: %w", errors.ErrUnsupported)
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	name := socketName(os.Geteuid(), os.Getpid(), binary.LittleEndian.Uint64(b[:]))
	l, err := listen(name)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	s := &Server{
		l: l, name: name, report: report, opened: time.Now().Round(0).UTC(), comm: ownComm(),
		slots: make(chan struct{}, served), quit: make(chan struct{}), done: make(chan struct{}),
		conns: make(map[*os.File]struct{}),
	}
	go s.accept()
	return s, nil
}

// Name returns the name of the socket, @ for the zero byte in front.
func (s *Server) Name() string { return s.name }

// Close hangs up, and waits for the server's goroutines. A nil server, and a second
// Close, do nothing.
func (s *Server) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		<-s.done
		return
	}
	s.closed = true
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	close(s.quit)
	s.l.close()
	<-s.done
}

// accept is the server's goroutine; those of connections live shorter. It serves those
// itself that need no wait and no lists.
func (s *Server) accept() {
	defer close(s.done)
	defer s.serve.Wait()
	for {
		select {
		case s.slots <- struct{}{}:
		case <-s.quit:
			return
		}
		fd, err := s.l.accept()
		if err != nil {
			<-s.slots
			if !s.again() {
				return
			}
			continue
		}
		t := talk{fd: fd}
		if peer, err := peerOf(fd); err != nil || peer.uid != os.Geteuid() || s.atOnce(&t) {
			closeFD(fd)
			<-s.slots
			continue
		}
		c := os.NewFile(uintptr(fd), "control connection")
		if !s.adopt(c) {
			c.Close()
			<-s.slots
			continue
		}
		go func() {
			defer s.serve.Done()
			s.finish(c, &t)
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
			<-s.slots
		}()
	}
}

// again waits after a failure, which is for lack of file descriptors if the socket is
// not closed, and reports whether to go on.
func (s *Server) again() bool {
	t := time.NewTimer(100 * time.Millisecond)
	defer t.Stop()
	select {
	case <-s.quit:
		return false
	case <-t.C:
		return true
	}
}

// adopt notes a connection, for Close to hang up.
func (s *Server) adopt(c *os.File) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c] = struct{}{}
	s.serve.Add(1)
	return true
}

// talk is one request and its answer, as far as they have come.
type talk struct {
	fd     int
	line   []byte // what was read
	req    *request
	answer []byte // what is to be written still
}

// atOnce reports whether the connection is done with, without a wait.
func (s *Server) atOnce(t *talk) bool {
	line := make([]byte, MaxRequest)
	n := receive(t.fd, line)
	if n == 0 {
		return true
	}
	t.line = line[:max(n, 0)]
	if !bytes.HasSuffix(t.line, []byte{'\n'}) {
		return false
	}
	req, err := parseRequest(t.line)
	if err == nil && req.Resources { // the lists take their time
		t.req = &req
		return false
	}
	t.answer = s.answer(&req, err)
	n = send(t.fd, t.answer)
	t.answer = t.answer[max(n, 0):]
	return n < 0 || len(t.answer) == 0
}

// finish answers with as many waits as it takes. What goes wrong with a connection is
// the client's.
func (s *Server) finish(c *os.File, t *talk) {
	defer c.Close()
	if c.SetDeadline(time.Now().Add(Patience)) != nil {
		return
	}
	if t.answer == nil {
		req, err := t.req, error(nil)
		if req == nil {
			var r request
			if r, err = readRequest(io.MultiReader(bytes.NewReader(t.line), c)); errors.Is(err, errNoRequest) {
				return
			}
			req = &r
		}
		t.answer = s.answer(req, err)
	}
	_, _ = c.Write(t.answer)
}

// answer is the line that answers a request, or what was wrong with it.
func (s *Server) answer(req *request, err error) []byte {
	var out answer
	switch {
	case err != nil:
		out.Error = err.Error()
	case req.Version != Version:
		out.Error = fmt.Sprintf("version is %d, this process speaks %d", req.Version, Version)
	default:
		d := s.report(req.Want)
		out.Opened, out.Comm, out.Device = s.opened, s.comm, &d
	}
	out.Version = Version
	b, err := out.append(make([]byte, 0, 16<<10))
	if err == nil && len(b) > MaxAnswer {
		err = fmt.Errorf("the answer has %d bytes, can have %d", len(b)-1, MaxAnswer-1)
	}
	if err != nil {
		b, _ = (&answer{Version: Version, Error: err.Error()}).append(nil)
	}
	return b
}

// errNoRequest is for those who hang up or are too slow.
var errNoRequest = errors.New("no request")

// readRequest reads the line of a client.
func readRequest(r io.Reader) (request, error) {
	line, err := bufio.NewReaderSize(io.LimitReader(r, MaxRequest), MaxRequest).ReadSlice('\n')
	if err != nil {
		if len(line) == MaxRequest {
			return request{}, fmt.Errorf("the request has more than %d bytes", MaxRequest)
		}
		return request{}, errNoRequest
	}
	return parseRequest(line)
}

// parseRequest reads one line; what comes after it is nobody's.
func parseRequest(line []byte) (req request, err error) {
	line = line[:bytes.IndexByte(line, '\n')]
	if err := json.Unmarshal(bytes.TrimSpace(line), &req); err != nil {
		return req, fmt.Errorf("the request is no JSON of version %d", Version)
	}
	return req, nil
}

// ownComm is the name of this process.
func ownComm() string {
	b, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(b), "\n")
}
