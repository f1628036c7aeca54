//go:build !unix

package demo

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// countedConn counts calls of Read and Write: system calls are hidden here.
type countedConn struct {
	*net.TCPConn
	n atomic.Uint64
}

func newCountedConn(c net.Conn) (*countedConn, error) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("not a TCP connection: %T", c)
	}
	return &countedConn{TCPConn: t}, nil
}

func (c *countedConn) calls() uint64 { return c.n.Load() }

// Read reads once.
func (c *countedConn) Read(p []byte) (int, error) { c.n.Add(1); return c.TCPConn.Read(p) }

// Write writes all of p.
func (c *countedConn) Write(p []byte) (int, error) { c.n.Add(1); return c.TCPConn.Write(p) }

// processCPU returns 0: not measured on this system.
func processCPU() time.Duration { return 0 }
