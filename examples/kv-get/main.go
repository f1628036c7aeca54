// Kv-get is a key-value store whose clients get values by one-sided RDMA READs:
// the server's program does nothing for a get.
//
//	go run ./examples/kv-get
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := run(ctx, os.Stdout, "127.0.0.1", "127.0.0.2"); err != nil {
		fmt.Fprintln(os.Stderr, "kv-get:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, serverAddr, clientAddr string) error {
	s, err := newServer(serverAddr, 1024)
	if err != nil {
		return err
	}
	defer s.close()
	for key, value := range map[string]string{"apple": "red", "banana": "yellow", "plum": "blue"} {
		if err := s.store.put(key, value); err != nil {
			return err
		}
	}
	here, there := net.Pipe() // stands for a TCP connection
	accepted := make(chan error, 1)
	go func() { accepted <- s.accept(ctx, there) }()
	c, err := newClient(ctx, here, clientAddr)
	if e := <-accepted; err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	defer c.close()
	for _, key := range []string{"apple", "banana", "cherry"} {
		value, ok, err := c.get(ctx, key)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %q, %v\n", key, value, ok)
	}
	const gets = 10_000
	start := time.Now()
	for range gets {
		if _, _, err := c.get(ctx, "plum"); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d gets, %v each\n", gets, (time.Since(start) / gets).Round(10*time.Nanosecond))
	return nil
}

// server owns the memory that clients read.
type server struct {
	store *store
	dev   *verbs.Device
	pd    *verbs.PD
	cq    *verbs.CQ
	mr    *verbs.MR
	mem   *verbs.Memory
}

func newServer(addr string, slots int) (*server, error) {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return nil, err
	}
	s := &server{}
	if s.dev, err = verbs.Open(verbs.Config{Addr: a}); err != nil {
		return nil, err
	}
	s.pd = s.dev.AllocPD()
	if s.cq, err = s.dev.CreateCQ(verbs.CQConfig{}); err == nil {
		if s.mem, err = verbs.Alloc(slots * slotSize); err == nil {
			s.mr, err = s.pd.RegisterMR(s.mem.Bytes(), ib.RemoteRead)
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	s.store = newStore(s.mem.Bytes())
	return s, nil
}

// accept lets one client in. All that it can do is read.
func (s *server) accept(ctx context.Context, conn net.Conn) error {
	qp, err := s.pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: s.cq, RecvCQ: s.cq})
	if err != nil {
		return err
	}
	if err := qp.ToInit(ib.RemoteRead); err != nil {
		return err
	}
	_, err = verbs.Connect(ctx, conn, qp, s.mr)
	return err
}

func (s *server) close() {
	s.dev.Close()
	if s.mem != nil {
		s.mem.Close()
	}
}

// client gets values. One goroutine uses it at a time.
type client struct {
	dev  *verbs.Device
	cq   *verbs.CQ
	mr   *verbs.MR
	qp   *verbs.QP
	peer *verbs.Peer
}

func newClient(ctx context.Context, conn net.Conn, addr string) (*client, error) {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return nil, err
	}
	c := &client{}
	if c.dev, err = verbs.Open(verbs.Config{Addr: a}); err != nil {
		return nil, err
	}
	pd := c.dev.AllocPD()
	if c.cq, err = c.dev.CreateCQ(verbs.CQConfig{}); err == nil {
		if c.mr, err = pd.RegisterMR(make([]byte, probes*slotSize), ib.LocalWrite); err == nil {
			if c.qp, err = pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: c.cq, RecvCQ: c.cq}); err == nil {
				c.peer, err = verbs.Connect(ctx, conn, c.qp, c.mr)
			}
		}
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// get returns the value of a key: one READ of all slots that may hold it, and
// another one if the server was just changing the slot.
func (c *client) get(ctx context.Context, key string) (value string, ok bool, err error) {
	off := slotOf(key, int(c.peer.Len)/slotSize) * slotSize
	for {
		err := c.qp.PostSend(ib.SendWR{
			Op: ib.Read, Flags: ib.Signaled, SGL: c.mr.SGE(0, probes*slotSize), Remote: c.peer.At(off),
		})
		if err != nil {
			return "", false, err
		}
		var wcs [1]ib.WC
		if _, err := c.cq.Wait(ctx, wcs[:]); err != nil {
			return "", false, err
		}
		if wcs[0].Status != ib.Success {
			return "", false, fmt.Errorf("get %q: %v", key, wcs[0].Status)
		}
		whole := true
		for b := c.mr.Bytes(); len(b) > 0; b = b[slotSize:] {
			k, v, good := decode(b[:slotSize])
			if good && k == key {
				return v, true, nil
			}
			whole = whole && good
		}
		if whole {
			return "", false, nil
		}
	}
}

func (c *client) close() { c.dev.Close() }
