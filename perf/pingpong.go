package perf

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf/handshake"
	"github.com/verbena-rdma/verbena/perf/report"
	"github.com/verbena-rdma/verbena/perf/run"
	"github.com/verbena-rdma/verbena/verbs"
)

// PingpongConfig says how to ping and pong. Start from [PingpongDefaults].
type PingpongConfig struct {
	Type     ib.QPType
	Peer     string // empty: be the server
	Port     int
	Device   string
	IBPort   int
	GIDIndex int // -1: chosen; the examples of libibverbs then use none, which RoCE refuses
	MTU      int
	Size     int
	RxDepth  int
	Iters    int
	SL       int
	Events   bool
	Check    bool // compare the data

	Out, Notes io.Writer
	Open       func(verbs.Config) (*verbs.Device, error)
	Clock      clock.Clock
}

// PingpongDefaults returns the defaults of ibv_rc_pingpong, ibv_uc_pingpong or
// ibv_ud_pingpong.
func PingpongDefaults(t ib.QPType) PingpongConfig {
	c := PingpongConfig{Type: t, Port: DefaultPort, IBPort: 1, GIDIndex: -1, MTU: 1024, Size: 4096, RxDepth: 500, Iters: 1000}
	if t == ib.UD {
		c.Size = 1024
	}
	return c
}

// PingpongOutcome is what a pingpong found.
type PingpongOutcome struct {
	Device        string
	Local, Remote handshake.Address
	Bytes         uint64 // both directions
	Iters         int
	Elapsed       time.Duration
	Verified      *bool // nil without Check
}

func (c *PingpongConfig) check() error {
	if c.MTU != 0 && mtuOf(c.MTU) == 0 {
		return usage("-m %d: must be 256, 512, 1024, 2048 or 4096", c.MTU)
	}
	for _, r := range []struct {
		name           string
		v, least, most int
	}{
		{"-p", c.Port, 1, 65535},
		{"-i", c.IBPort, 1, 1},
		{"-s", c.Size, 1, maxSize},
		{"-r", c.RxDepth, 1, maxRxDepth},
		{"-n", c.Iters, 1, maxIters},
		{"-l", c.SL, 0, 7},
		{"-g", c.GIDIndex, -1, 1023},
	} {
		if r.v < r.least || r.v > r.most {
			return usage("%s %d: must be between %d and %d", r.name, r.v, r.least, r.most)
		}
	}
	if most := ib.MTU4096.Bytes(); c.Type == ib.UD && c.Size > most {
		return usage("-s %d: on UD a message is one packet, at most the path MTU of %d bytes", c.Size, most)
	}
	return nil
}

// mtuOf returns the code of a path MTU in bytes, 0 if there is none.
func mtuOf(n int) ib.MTU {
	for m := ib.MTU256; m <= ib.MTU4096; m++ {
		if m.Bytes() == n {
			return m
		}
	}
	return 0
}

// fillByte is what libibverbs' examples fill their buffers with.
const fillByte = 0x7b

// Pingpong exchanges messages with a peer of the same kind and prints what the
// examples of libibverbs print.
func Pingpong(ctx context.Context, cfg PingpongConfig) (*PingpongOutcome, error) {
	o := new(PingpongOutcome)
	if err := cfg.check(); err != nil {
		return o, err
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.NewReal()
	}
	p := &pingpong{cfg: &cfg, out: o}
	err := p.run(ctx)
	p.close()
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return o, err
}

type pingpong struct {
	cfg     *PingpongConfig
	out     *PingpongOutcome
	w       *wire
	dev     *verbs.Device
	mem     *verbs.Memory
	mr      *verbs.MR
	cq      *verbs.CQ
	ch      *verbs.CompChannel
	qp      *verbs.QP
	gid     verbs.GIDEntry
	ud      ib.Datagram
	flags   ib.SendFlags
	skip    int // GRH before the message
	closers []func() error
}

func (p *pingpong) close() {
	for i := len(p.closers) - 1; i >= 0; i-- {
		_ = p.closers[i]()
	}
}

func (p *pingpong) later(f func() error) { p.closers = append(p.closers, f) }

func (p *pingpong) print(format string, args ...any) {
	if p.cfg.Out != nil {
		fmt.Fprintf(p.cfg.Out, format, args...)
	}
}

func (p *pingpong) run(ctx context.Context) error {
	c := p.cfg
	server := c.Peer == ""
	var err error
	if c.Device != "" { // fail before waiting, and before the peer begins
		if err = p.open(netip.Addr{}, netip.Addr{}, server); err != nil {
			return err
		}
		if c.GIDIndex >= 0 {
			if _, err = chooseGID(p.dev, c.GIDIndex, false, netip.Addr{}); err != nil {
				return err
			}
		}
	}
	if server {
		p.w, err = listen(ctx, "", c.Port, func() {})
	} else {
		p.w, err = dial(ctx, c.Peer, c.Port, "")
	}
	if err != nil {
		return err
	}
	p.later(p.w.Close)
	stop := context.AfterFunc(ctx, func() { p.w.Conn.Close() })
	defer stop()
	local, remote := p.w.addrs()
	if p.dev == nil {
		if err := p.open(local, remote, server); err != nil {
			return err
		}
	}
	if p.gid, err = chooseGID(p.dev, c.GIDIndex, false, remote); err != nil {
		return err
	}
	if err := p.resources(); err != nil {
		return err
	}
	if err := p.meet(server); err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.exchange(ctx, server); err != nil {
		return explain(err, pingpongTimeout)
	}
	bits := float64(p.out.Bytes) * 8
	sec := max(p.out.Elapsed, 1).Seconds()
	p.print("%d bytes in %.2f seconds = %.2f Mbit/sec\n", p.out.Bytes, sec, bits/sec/1e6)
	p.print("%d iters in %.2f seconds = %.2f usec/iter\n", c.Iters, sec, sec*1e6/float64(c.Iters))
	// The peer's last message may still want its acknowledgement.
	p.w.finish(finishTimeout)
	p.linger(ctx)
	if c.Check && server {
		return p.checkData()
	}
	return nil
}

// lingerTime is how long the device stays after the last message: peers that
// have closed their connection long ago do not tell when they are through.
const lingerTime = 100 * time.Millisecond

func (p *pingpong) linger(ctx context.Context) {
	t := time.NewTimer(lingerTime)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (p *pingpong) open(local, remote netip.Addr, server bool) (err error) {
	c := p.cfg
	if p.dev, err = openDevice(c.Open, c.Device, c.GIDIndex >= 0, local, remote, server); err != nil {
		return err
	}
	p.out.Device = p.dev.Name()
	p.later(p.dev.Close)
	return nil
}

func (p *pingpong) resources() (err error) {
	c := p.cfg
	if c.Type == ib.UD {
		p.skip = grhLen
		if mtu := p.dev.Port().ActiveMTU.Bytes(); c.Size > mtu {
			return fmt.Errorf("-s %d: on UD a message is one packet, at most the MTU of %d bytes", c.Size, mtu)
		}
	}
	pd := p.dev.AllocPD()
	p.later(pd.Close)
	if p.mem, err = verbs.Alloc(c.Size + p.skip); err != nil {
		return err
	}
	p.later(p.mem.Close)
	b := p.mem.Bytes()
	for i := range b {
		b[i] = fillByte
	}
	if p.mr, err = pd.RegisterMR(b, ib.LocalWrite); err != nil {
		return err
	}
	p.later(p.mr.Close)
	cqc := verbs.CQConfig{Depth: c.RxDepth + 1}
	if c.Events {
		p.ch = p.dev.CreateCompChannel()
		p.later(p.ch.Close)
		cqc.Channel = p.ch
	}
	if p.cq, err = p.dev.CreateCQ(cqc); err != nil {
		return err
	}
	p.later(p.cq.Close)
	inline := p.dev.Attr().Limits.MaxInline
	p.qp, err = pd.CreateQP(verbs.QPConfig{Type: c.Type, SendCQ: p.cq, RecvCQ: p.cq, Cap: ib.QPCap{
		MaxSendWR: 1, MaxRecvWR: c.RxDepth, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: min(inline, c.Size),
	}})
	if err != nil {
		return err
	}
	p.later(p.qp.Close)
	p.flags = ib.Signaled
	if c.Size <= inline {
		p.flags |= ib.Inline
	}
	if c.Type == ib.UD {
		err = p.qp.ToInitUD(QKey)
	} else {
		err = p.qp.ToInit(0)
	}
	if err != nil {
		return err
	}
	return p.post(c.RxDepth)
}

// post posts n receives.
func (p *pingpong) post(n int) error {
	for range n {
		if err := p.qp.PostRecv(ib.RecvWR{ID: recvID, SGL: p.mr.SGE(0, p.cfg.Size+p.skip)}); err != nil {
			return err
		}
	}
	return nil
}

const recvID, sendID = 1, 2

const pingpongTimeout = 14

// meet swaps addresses and connects.
func (p *pingpong) meet(server bool) (err error) {
	c := p.cfg
	mine := handshake.Address{QPN: p.qp.Num(), PSN: ib.PSN(rand.Uint32()) & ib.PSNMask, GID: p.gid.GID}
	p.out.Local = mine
	sep := ", GID"
	if c.Type == ib.UD {
		sep = ": GID"
	}
	p.print("  local address:  LID 0x%04x, QPN 0x%06x, PSN 0x%06x%s %s\n", mine.LID, uint32(mine.QPN), uint32(mine.PSN), sep, report.GIDText(mine.GID))
	p.w.within(openTimeout)
	defer p.w.within(0)
	connect := func(a handshake.Address) error { return p.connect(mine, a) }
	var a handshake.Address
	if server {
		a, err = handshake.PingpongServer(p.w, mine, connect)
	} else {
		a, err = handshake.PingpongClient(p.w, mine)
	}
	if err != nil {
		return err
	}
	p.out.Remote = a
	p.print("  remote address: LID 0x%04x, QPN 0x%06x, PSN 0x%06x, GID %s\n", a.LID, uint32(a.QPN), uint32(a.PSN), report.GIDText(a.GID))
	if server {
		return nil
	}
	return connect(a)
}

func (p *pingpong) connect(mine, a handshake.Address) error {
	c := p.cfg
	path := verbs.Path{
		DestQPN: a.QPN, PSN: a.PSN, LocalPSN: mine.PSN, GID: a.GID, GIDIndex: p.gid.Index, MTU: mtuOf(c.MTU), SL: uint8(c.SL),
		TimeoutExp: pingpongTimeout, RetryCnt: 7, RNRRetry: 7, MinRNRTimer: 12, MaxRdAtomic: 1, MaxDestRdAtomic: 1,
	}
	if active := p.dev.Port().ActiveMTU; path.MTU > active {
		return fmt.Errorf("-m %d: the active MTU of %s is %d bytes", c.MTU, p.dev.Name(), active.Bytes())
	}
	if err := p.qp.ToRTR(path); err != nil {
		return err
	}
	if err := p.qp.ToRTS(path); err != nil {
		return err
	}
	if c.Type != ib.UD {
		return nil
	}
	pd := p.qp.PD()
	ah, err := pd.CreateAH(ib.AV{DGID: a.GID, SGIDIndex: p.gid.Index, SL: uint8(c.SL)})
	if err != nil {
		return err
	}
	p.later(ah.Close)
	p.ud = ib.Datagram{AH: ah.Handle(), QPN: a.QPN, QKey: QKey}
	return nil
}

// exchange is the loop: a message goes out when the one before has completed
// and the peer's has come.
func (p *pingpong) exchange(ctx context.Context, server bool) error {
	c := p.cfg
	wr := []ib.SendWR{{ID: sendID, Op: ib.Send, SGL: p.mr.SGE(p.skip, c.Size), Flags: p.flags, UD: p.ud}}
	if c.Check && !server {
		b := p.mem.Bytes()[p.skip:]
		for i := 0; i < c.Size; i += pageSize {
			b[i] = 0
		}
	}
	k := run.Common{Op: ib.Send, CQ: p.cq, Device: p.dev, Events: p.ch}
	defer k.Wake()
	start := c.Clock.Now()
	defer func() {
		p.out.Elapsed = c.Clock.Now().Sub(start)
		p.out.Iters, p.out.Bytes = c.Iters, uint64(c.Size)*uint64(c.Iters)*2
	}()
	pending, sent, received, owed := recvID, 0, 0, 0
	send := func() error {
		pending = recvID | sendID
		_, err := p.qp.PostSendBatch(wr)
		return err
	}
	if !server {
		if err := send(); err != nil {
			return err
		}
	}
	var wcs [2]ib.WC
	last, idle := start, 0
	for sent < c.Iters || received < c.Iters {
		n, err := k.Poll(ctx, wcs[:])
		if err != nil {
			return err
		}
		if n == 0 {
			if idle++; idle%1024 == 0 || c.Events {
				if err := p.silence(ctx, c.Clock.Now().Sub(last)); err != nil {
					return err
				}
			}
			continue
		}
		if idle > 0 {
			last, idle = c.Clock.Now(), 0
		}
		for i := range n {
			wc := &wcs[i]
			if wc.Status != ib.Success {
				return &run.StatusError{Status: wc.Status, QPN: wc.QPN, Op: ib.Send, Recv: wc.ID == recvID, N: uint64(min(sent, received)), Of: uint64(c.Iters)}
			}
			if wc.ID == sendID {
				sent++
			} else {
				received++
				if owed++; c.RxDepth-owed <= 1 {
					if err := p.post(owed); err != nil {
						return err
					}
					owed = 0
				}
			}
			if pending &^= int(wc.ID); pending == 0 && sent < c.Iters {
				if err := send(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// pageSize is the step at which -c marks the data.
const pageSize = 4096

// How long an end waits for the next message, where messages are repeated and
// where they are not.
const (
	silenceRC   = time.Minute
	silenceMost = 10 * time.Second
)

// silence gives up when nothing has come for long.
func (p *pingpong) silence(ctx context.Context, idle time.Duration) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case idle < silenceMost, p.cfg.Type == ib.RC && idle < silenceRC:
		return nil
	case p.cfg.Type == ib.RC:
		return fmt.Errorf("no message from the peer for %v: does it run the same pingpong with the same -n?", silenceRC)
	}
	return fmt.Errorf("no message from the peer for %v: one was lost, and %v does not repeat it; or -n differs", silenceMost, p.cfg.Type)
}

// checkData compares what has come with what the client sends: every page
// begins with a zero and goes on with the fill byte.
func (p *pingpong) checkData() error {
	b := p.mem.Bytes()[p.skip:][:p.cfg.Size]
	first, bad := 0, 0
	for i := 0; i < len(b); i += pageSize {
		page := b[i:min(i+pageSize, len(b))]
		if page[0] == 0 && len(bytes.TrimLeft(page[1:], string(rune(fillByte)))) == 0 {
			continue
		}
		if bad++; bad == 1 {
			first = i / pageSize
		}
		p.print("invalid data in page %d\n", i/pageSize)
	}
	ok := bad == 0
	p.out.Verified = &ok
	if ok {
		return nil
	}
	return fmt.Errorf("%w: %d pages, the first is %d: does the client run with -c too?", ErrVerify, bad, first)
}
