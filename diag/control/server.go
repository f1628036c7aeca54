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
	"net"
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
	l      *net.UnixListener
	report func(resources bool) snapshot.Device
	opened time.Time
	comm   string
	slots  chan struct{} // one element for each connection that is served
	quit   chan struct{}
	done   chan struct{}

	mu     sync.Mutex
	closed bool
	conns  map[*net.UnixConn]struct{}
	serve  sync.WaitGroup
}

// Listen opens the control socket of a device in the network namespace of the calling
// thread. report is called for each request, by several goroutines at a time; it must
// not wait for whoever calls Close. The error matches errors.ErrUnsupported where
// there are no such sockets. The caller closes the server before the device.
func Listen(report func(resources bool) snapshot.Device) (*Server, error) {
	if !supported {
		return nil, fmt.Errorf("control socket: %w", errors.ErrUnsupported)
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	name := socketName(os.Geteuid(), os.Getpid(), binary.LittleEndian.Uint64(b[:]))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	s := &Server{
		l: l, report: report, opened: time.Now().Round(0).UTC(), comm: ownComm(),
		slots: make(chan struct{}, served), quit: make(chan struct{}), done: make(chan struct{}),
		conns: make(map[*net.UnixConn]struct{}),
	}
	go s.accept()
	return s, nil
}

// Name returns the name of the socket, @ for the zero byte in front.
func (s *Server) Name() string { return s.l.Addr().String() }

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
	s.l.Close()
	<-s.done
}

// accept is the server's goroutine; those of connections live shorter.
func (s *Server) accept() {
	defer close(s.done)
	defer s.serve.Wait()
	for {
		select {
		case s.slots <- struct{}{}:
		case <-s.quit:
			return
		}
		c, err := s.l.AcceptUnix()
		if err != nil {
			<-s.slots
			if !s.again() {
				return
			}
			continue
		}
		if peer, err := peerOf(c); err != nil || peer.uid != os.Geteuid() || !s.adopt(c) {
			c.Close()
			<-s.slots
			continue
		}
		go func() {
			defer s.serve.Done()
			s.talk(c)
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
func (s *Server) adopt(c *net.UnixConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c] = struct{}{}
	s.serve.Add(1)
	return true
}

// talk answers one request. What goes wrong with a connection is the client's.
func (s *Server) talk(c *net.UnixConn) {
	defer c.Close()
	if c.SetDeadline(time.Now().Add(Patience)) != nil {
		return
	}
	req, err := readRequest(c)
	var out answer
	switch {
	case errors.Is(err, errNoRequest):
		return
	case err != nil:
		out.Error = err.Error()
	case req.Version != Version:
		out.Error = fmt.Sprintf("version is %d, this process speaks %d", req.Version, Version)
	default:
		d := s.report(req.Resources)
		out.Opened, out.Comm, out.Device = s.opened, s.comm, &d
	}
	out.Version = Version
	b, err := json.Marshal(&out)
	if err == nil && len(b) >= MaxAnswer {
		err = fmt.Errorf("the answer has %d bytes, can have %d", len(b), MaxAnswer-1)
	}
	if err != nil {
		b, _ = json.Marshal(&answer{Version: Version, Error: err.Error()})
	}
	_, _ = c.Write(append(b, '\n'))
}

// errNoRequest is for those who hang up or are too slow.
var errNoRequest = errors.New("no request")

// readRequest reads the line of a client.
func readRequest(r io.Reader) (request, error) {
	var req request
	line, err := bufio.NewReaderSize(io.LimitReader(r, MaxRequest), MaxRequest).ReadSlice('\n')
	if err != nil {
		if len(line) == MaxRequest {
			return req, fmt.Errorf("the request has more than %d bytes", MaxRequest)
		}
		return req, errNoRequest
	}
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
