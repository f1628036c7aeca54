//go:build linux

package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/test/interop/guest"
	"github.com/verbena-rdma/verbena/verbs"
)

// host is our side in this process: one device on the host side of the network, and what tests need of it.
type host struct {
	t   *testing.T
	net *guest.Net
	dev *verbs.Device
	pd  *verbs.PD
	cq  *verbs.CQ
	mr  *verbs.MR
	buf []byte
}

// newHost opens a device with all addresses of the host side, on a link that wrap may put something around, and
// registers n bytes. Everything ends with the test.
func newHost(t *testing.T, n int, wrap func(link.Link) link.Link) *host {
	t.Helper()
	return openHost(t, network(t), n, verbs.Config{Wrap: wrap})
}

// openHost is newHost for a device that differs from the usual one, or on another network than the shared one.
func openHost(t *testing.T, on *guest.Net, n int, cfg verbs.Config) *host {
	t.Helper()
	h := &host{t: t, net: on, buf: make([]byte, n)}
	cfg.Netdev = guest.Bridge
	err := h.net.Do(func() (err error) {
		h.dev, err = verbs.Open(cfg)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.dev.Close(); err != nil {
			t.Errorf("close our device: %v", err)
		}
	})
	h.pd = h.dev.AllocPD()
	if h.cq, err = h.dev.CreateCQ(verbs.CQConfig{Depth: 4096, Vector: verbs.SpreadVectors}); err != nil {
		t.Fatal(err)
	}
	if h.mr, err = h.pd.RegisterMR(h.buf, ib.LocalWrite|ib.RemoteAll|ib.RemoteFlush); err != nil {
		t.Fatal(err)
	}
	return h
}

// qp makes a queue pair whose completions go to the one queue.
func (h *host) qp(typ ib.QPType) *verbs.QP {
	h.t.Helper()
	q, err := h.pd.CreateQP(verbs.QPConfig{
		Type: typ, SendCQ: h.cq, RecvCQ: h.cq,
		Cap: ib.QPCap{MaxSendWR: 512, MaxRecvWR: 512, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 256},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return q
}

// gid is the row of our GID table that reaches an address of the guest.
func (h *host) gid(peer netip.Addr) int {
	h.t.Helper()
	var i int
	err := h.net.Do(func() (err error) {
		i, err = h.dev.SelectGID(peer)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return i
}

// connect takes a queue pair from Reset to RTS. Routes are asked for on the way, so it happens inside the namespace.
func (h *host) connect(q *verbs.QP, p verbs.Path) error {
	return h.net.Do(func() error {
		if q.Type() == ib.UD {
			return errors.Join(q.ToInitUD(pingpongQKey), q.ToRTR(p), q.ToRTS(p))
		}
		return errors.Join(q.ToInit(ib.LocalWrite|ib.RemoteAll|ib.RemoteFlush), q.ToRTR(p), q.ToRTS(p))
	})
}

// datagram is where a UD queue pair sends to; nothing for others.
func (h *host) datagram(q *verbs.QP, p verbs.Path) ib.Datagram {
	h.t.Helper()
	if q.Type() != ib.UD {
		return ib.Datagram{}
	}
	var ah *verbs.AH
	if err := h.net.Do(func() (err error) { ah, err = h.pd.CreateAH(p.AV()); return err }); err != nil {
		h.t.Fatal(err)
	}
	return ib.Datagram{AH: ah.Handle(), QPN: p.DestQPN, QKey: pingpongQKey}
}

// dial opens a TCP connection to the guest.
func (h *host) dial(ctx context.Context, to netip.AddrPort) net.Conn {
	h.t.Helper()
	var c net.Conn
	err := h.net.Do(func() (err error) {
		var d net.Dialer
		c, err = d.DialContext(ctx, "tcp", to.String())
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	if d, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(d)
	}
	return c
}

// await polls until n completions have come, all successful.
func (h *host) await(ctx context.Context, n int) ([]ib.WC, error) {
	all := make([]ib.WC, 0, n)
	for len(all) < n {
		wcs := make([]ib.WC, n-len(all))
		k, err := h.cq.Wait(ctx, wcs)
		if err != nil {
			return all, fmt.Errorf("%d of %d completions: %w", len(all), n, err)
		}
		for i := range wcs[:k] {
			if wcs[i].Status != ib.Success {
				return all, fmt.Errorf("completion %d of %d: %v of request %d: %v", len(all)+i+1, n, wcs[i].Op, wcs[i].ID, wcs[i].Status)
			}
		}
		all = append(all, wcs[:k]...)
	}
	return all, nil
}

// clean fails the test if our counters tell of a packet that we could not make sense of.
func (h *host) clean() {
	h.t.Helper()
	h.tidy(false)
}

// tidy is clean for a link that may corrupt packets: those are dropped for their ICRC, or before it for a header that
// cannot be, and must have been found.
func (h *host) tidy(corrupts bool) {
	h.t.Helper()
	s := h.dev.Stats()
	for _, name := range []string{
		"drop_short", "drop_version", "drop_bad_opcode", "drop_bad_pad", "drop_bad_length", "drop_icrc", "drop_address",
		"drop_management", "drop_multicast", "cqe_lost", "events_lost", "send_err", "drop_envelope", "drop_vlan", "drop_roce_version",
	} {
		if v := s.Get(name); v != 0 && (!corrupts || !strings.HasPrefix(name, "drop_")) {
			h.t.Errorf("our counter %s is %d, must be 0", name, v)
		}
	}
	if h.t.Failed() {
		for _, c := range s {
			if c.Value != 0 {
				h.t.Logf("our %s: %d", c.Name, c.Value)
			}
		}
		h.t.Logf("our link: %+v", h.dev.LinkCounters())
	}
}

func randomPSN() ib.PSN { return ib.PSN(rand.Uint32() & 0xFFFFFF) }

// within returns a context that ends after the time an exchange may take, and with the test.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
