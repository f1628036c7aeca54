package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/verbena-rdma/verbena/rdmacm"
)

// server sends back what its clients send.
type server struct {
	host     *host
	listener *rdmacm.Listener
	out      io.Writer
}

// serve listens at an address; port 0 for any that is free.
func serve(addr string, port uint16, out io.Writer) (*server, error) {
	h, err := openHost(addr)
	if err != nil {
		return nil, err
	}
	l, err := h.cm.Listen(rdmacm.TCP, port)
	if err != nil {
		h.close()
		return nil, err
	}
	return &server{host: h, listener: l, out: out}, nil
}

func (s *server) close() { s.host.close() }

// run takes clients until ctx ends, each with a goroutine of its own.
func (s *server) run(ctx context.Context) error {
	var clients sync.WaitGroup
	defer clients.Wait()
	for {
		req, err := s.listener.Next(ctx)
		if err != nil {
			return err
		}
		clients.Go(func() {
			if err := s.client(ctx, req); err != nil && ctx.Err() == nil {
				fmt.Fprintf(s.out, "client %v: %v\n", req.RemoteAddr(), err)
			}
		})
	}
}

// client serves one client until it disconnects, or is gone.
func (s *server) client(ctx context.Context, req *rdmacm.Request) error {
	e, err := s.host.newEnd()
	if err != nil {
		return errors.Join(err, req.Reject([]byte("no room")))
	}
	defer func() { _ = e.close() }()
	conn, err := req.Accept(ctx, e.qp, rdmacm.Options{Private: []byte("welcome")})
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		message, err := e.hear(ctx)
		select {
		case <-conn.Done(): // its receives are flushed
			return nil
		default:
		}
		if err != nil {
			return err
		}
		// The next receive is posted before the answer: then the client may send.
		answer := append([]byte(nil), message...)
		if err := errors.Join(e.receive(), e.send(ctx, answer)); err != nil {
			return err
		}
	}
}
