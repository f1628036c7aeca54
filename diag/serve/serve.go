package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Bounds of a server. Everything asked of it is a GET of a short path.
const (
	maxConns      = 64
	maxHeader     = 16 << 10
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 60 * time.Second
	idleTimeout   = 2 * time.Minute
	endTimeout    = 5 * time.Second
)

// Server is a listening server.
type Server struct {
	lis      net.Listener
	loopback bool
}

// Listen takes an address, host:port; port 0 for any. The error names the address and
// what is wrong with it.
func Listen(ctx context.Context, address string) (*Server, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("--listen %q: must be an address and a port, such as 127.0.0.1:9879", address)
	}
	var lc net.ListenConfig
	lis, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--listen %q: %w", address, unwrapped(err))
	}
	s := &Server{lis: &limited{Listener: lis, free: make(chan struct{}, maxConns)}}
	a, ok := lis.Addr().(*net.TCPAddr)
	s.loopback = host != "" && ok && a.IP.IsLoopback()
	return s, nil
}

// unwrapped leaves out what net says about the address, which the caller has said.
func unwrapped(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// URL is where the server is.
func (s *Server) URL() string { return "http://" + s.lis.Addr().String() }

// Loopback reports whether only this host can reach the server.
func (s *Server) Loopback() bool { return s.loopback }

// Announce writes where the server is and who can reach it.
func (s *Server) Announce(w io.Writer, what string) {
	fmt.Fprintf(w, "%s at %s/\n", what, s.URL())
	if !s.loopback {
		fmt.Fprintln(w, "warning: this is no loopback address: whoever reaches it can read this, without a password")
	}
}

// Close gives the address back, for a server that does not Serve.
func (s *Server) Close() error { return s.lis.Close() }

// Serve answers until the context ends, then lets answers under way finish.
func (s *Server) Serve(ctx context.Context, h http.Handler) error {
	if s.loopback {
		h = localOnly(h)
	}
	srv := &http.Server{
		Handler: h, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(s.lis) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	err := srv.Shutdown(end)
	if err != nil {
		err = srv.Close()
	}
	<-ended
	return err
}

// localOnly answers only those who name this host as they would by themselves: a page
// of elsewhere, whose name has been made to point here, is sent away.
func localOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !localName(r.Host) {
			http.Error(w, fmt.Sprintf("%.100q is no name of this host; it listens on loopback only", r.Host), http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func localName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// limited is a listener with so many connections at a time; more are closed.
type limited struct {
	net.Listener
	free chan struct{}
}

// Accept waits for a connection for which there is room.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.free <- struct{}{}:
			return &counted{Conn: c, free: l.free}, nil
		default: // waiting here would outlast the end of the server
			c.Close()
		}
	}
}

type counted struct {
	net.Conn
	free chan struct{}
	once sync.Once
}

// Close closes the connection and makes room.
func (c *counted) Close() error {
	c.once.Do(func() { <-c.free })
	return c.Conn.Close()
}
