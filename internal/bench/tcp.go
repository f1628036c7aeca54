package bench

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// tcp is what a Go program does without us: a net.Conn with 64 KiB writes.
type tcp struct {
	c *child
	l net.Listener
	n net.Conn
}

const tcpWrite = 64 << 10

func (t *tcp) prepare() (o Offer, err error) {
	if t.c.near {
		return o, nil
	}
	if t.l, err = net.Listen("tcp", netip.AddrPortFrom(t.c.addr, 0).String()); err != nil {
		return o, err
	}
	o.Port = t.l.Addr().(*net.TCPAddr).Port
	return o, nil
}

func (t *tcp) join(peer Offer) (err error) {
	if t.c.near {
		t.n, err = net.DialTimeout("tcp", net.JoinHostPort(peer.Addr, strconv.Itoa(peer.Port)), patience/2)
		return err
	}
	t.n, err = t.l.Accept()
	return err
}

func (t *tcp) slot(d time.Duration) (s Sample, err error) {
	buf := make([]byte, regionBytes)
	m := newMeter(d)
	for n := uint64(0); !m.tick(n, &s); n++ {
		off := int(n) * tcpWrite % regionBytes
		if _, err := t.n.Write(buf[off : off+tcpWrite]); err != nil {
			return s, err
		}
	}
	s.Bytes = s.Messages * tcpWrite
	return s, nil
}

func (t *tcp) serve(h *halt) error {
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-h.ctx.Done():
			_ = t.n.SetReadDeadline(time.Unix(1, 0))
		case <-stop:
		}
	}()
	if err := t.n.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	buf := make([]byte, regionBytes)
	for off := 0; ; off = (off + tcpWrite) % regionBytes {
		_, err := t.n.Read(buf[off : off+tcpWrite])
		switch {
		case h.stop.Load():
			return t.drain(buf)
		case err != nil:
			return err
		}
	}
}

// drain reads what is still under way, so that the next slot starts clean.
func (t *tcp) drain(buf []byte) error {
	for {
		if err := t.n.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			return err
		}
		_, err := t.n.Read(buf)
		var ne net.Error
		switch {
		case errors.As(err, &ne) && ne.Timeout(), errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func (t *tcp) close() error {
	var err error
	if t.n != nil {
		err = t.n.Close()
	}
	if t.l != nil {
		err = errors.Join(err, t.l.Close())
	}
	return err
}
