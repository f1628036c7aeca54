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
	names    map[string]bool // further names in requests
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

// maxNames is how many further names a server has at most.
const maxNames = 64

// Allow takes further names by which requests may call the server, such as that of a
// proxy in front of it, without a port. A server on loopback answers to the names of
// loopback and to these; one that others reach answers to any name, and once names
// are allowed to these, to those of loopback and to addresses. The error names the one
// that is wrong. It is called before Serve.
func (s *Server) Allow(names []string) error {
	if len(names) > maxNames {
		return fmt.Errorf("--allow-host: %d names, the limit is %d", len(names), maxNames)
	}
	for _, n := range names {
		if !validName(n) {
			return fmt.Errorf("--allow-host %.100q: must be a name or an address without a port, such as monitor.example", n)
		}
		if s.names == nil {
			s.names = map[string]bool{}
		}
		s.names[canonical(n)] = true
	}
	return nil
}

// validName reports whether a name can be that of a host: letters, digits, dots, hyphens
// and underscores (RFC 1123 §2.1, and what people do), or an IP address.
func validName(n string) bool {
	if _, err := netip.ParseAddr(strings.Trim(n, "[]")); err == nil {
		return true
	}
	return n != "" && len(n) <= 253 && strings.Trim(strings.ToLower(n), "abcdefghijklmnopqrstuvwxyz0123456789.-_") == "" && strings.Trim(n, ".") != ""
}

// canonical is one form for all ways to write a name.
func canonical(n string) string {
	n = strings.Trim(n, "[]")
	if a, err := netip.ParseAddr(n); err == nil {
		return a.String()
	}
	return strings.ToLower(strings.TrimSuffix(n, "."))
}

// Serve answers until the context ends, then lets answers under way finish.
func (s *Server) Serve(ctx context.Context, h http.Handler) error {
	if s.loopback || len(s.names) > 0 {
		h = s.named(h)
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

// named answers only those who name this host as they would by themselves: a page
// of elsewhere, whose name has been made to point here, is sent away.
func (s *Server) named(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.answersTo(r.Host) {
			http.Error(w, fmt.Sprintf("%.100q is no name of this server; --allow-host NAME allows one", r.Host), http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// answersTo reports whether a request's Host is a name of the server.
func (s *Server) answersTo(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = canonical(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || s.names[host] {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && (a.IsLoopback() || !s.loopback) // an address cannot be made to point elsewhere
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
