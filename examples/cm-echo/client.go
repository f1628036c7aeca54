package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/verbena-rdma/verbena/rdmacm"
)

// talk connects to a server, from an address of this host or, where that is
// empty, from the one that routes there; sends each word and prints what comes
// back.
func talk(ctx context.Context, server, from string, words []string, out io.Writer) error {
	if from == "" {
		var err error
		if from, err = sourceFor(server); err != nil {
			return err
		}
	}
	h, err := openHost(from)
	if err != nil {
		return err
	}
	defer h.close()
	route, err := h.cm.Resolve(ctx, server)
	if err != nil {
		return err
	}
	e, err := h.newEnd()
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }()
	// Dial brings the queue pair to RTS. The private data reach the server's
	// program with the request, its own come with the answer.
	conn, err := h.cm.Dial(ctx, route, e.qp, rdmacm.Options{Private: []byte("cm-echo")})
	switch {
	case errors.Is(err, rdmacm.ErrRefused):
		return fmt.Errorf("%w: does the server run, and on that port?", err)
	case err != nil:
		return err
	}
	for _, w := range words {
		if err := e.send(ctx, []byte(w)); err != nil {
			return err
		}
		back, err := e.hear(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s came back\n", back)
		if err := e.receive(); err != nil {
			return err
		}
	}
	return conn.Disconnect(ctx, nil)
}

// sourceFor returns the address that this host would send from.
func sourceFor(server string) (string, error) {
	c, err := net.Dial("udp", server) // sends nothing
	if err != nil {
		return "", err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().String(), nil
}
