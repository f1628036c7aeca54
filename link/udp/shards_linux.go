package udp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/internal/ring"
)

// Several links on one address and port: one socket each, in a group that the
// kernel chooses from by a classic BPF program (SO_ATTACH_REUSEPORT_CBPF), which
// needs no privilege. The program sees the UDP payload, so the BTH is at its
// start and the destination QPN in its second word.
//
// The kernel chooses a socket for what arrives in one piece. A run that a sender
// mixed, or packets of several queue pairs that were merged on their way in (the
// merge looks at addresses and ports alone), come whole to the socket of the
// first. The link that finds packets of others in a piece passes on copies.
//
// The index of a socket in the group is its place in the order of binding, and
// that of the last moves when another one closes: the sockets of a set belong to
// one process, which closes them together.

const (
	soAttachReuseportCBPF = 51 // asm-generic/socket.h

	qpnOffset = 4 // of the word with the destination QPN, from the BTH
	gsiQPN    = 1
	groupQPN  = 0xFFFFFF

	bpfXor = 0xa0 // linux/filter.h BPF_XOR
)

// shards are the links of one set.
type shards struct {
	links []*system // fixed once all are open
	left  atomic.Int32
	locks []int // files that keep other sets away
}

func openShards(cfg *Config, n int) (_ []link.Link, err error) {
	set := &shards{}
	defer func() {
		if err != nil {
			for _, l := range set.links {
				_ = l.Close()
			}
			set.unlock()
		}
	}()
	for _, a := range cfg.Addrs {
		if err := set.lock(cfg, a); err != nil {
			return nil, err
		}
	}
	links := make([]link.Link, n)
	set.left.Store(int32(n) + 1) // none is the last before all are open
	for i := range links {
		if links[i], err = openShard(cfg, set); err != nil {
			return nil, err
		}
		if i == 0 {
			if err := set.steer(cfg.Steering, n); err != nil {
				return nil, err
			}
		}
	}
	set.left.Store(int32(n))
	return links, nil
}

// lock makes sure that nobody has the port at the address: the kernel would let
// another set of the same user join. A socket that does not share sees who is
// there; a name, which exists once in a network namespace, keeps away who begins
// at the same time.
func (s *shards) lock(cfg *Config, a netip.Addr) error {
	probe := &endpoint{addr: a.WithZone(""), cfg: cfg}
	var err error
	if probe.zone, err = cfg.zoneOf(a); err != nil {
		return fmt.Errorf("open UDP links: %w", err)
	}
	m, err := probe.open(cfg.Port, false)
	if err != nil {
		return openError(a, cfg.Port, err)
	}
	_ = unix.Close(m.fd)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open UDP links on %v: %w", a, os.NewSyscallError("socket", err))
	}
	s.locks = append(s.locks, fd)
	name := fmt.Sprintf("@verbena/udp/%v/%d", a, cfg.Port)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		return openError(a, cfg.Port, err)
	}
	return nil
}

func (s *shards) unlock() {
	for _, fd := range s.locks {
		_ = unix.Close(fd)
	}
	s.locks = nil
}

// open opens the receiving socket of an endpoint, in the set's group if there is
// a set.
func (s *shards) open(e *endpoint, port uint16) (sock, error) {
	e.share = s != nil
	return e.open(port, true)
}

// leave says that a link is closed and reports whether it was the last.
func (s *shards) leave() bool {
	if s == nil {
		return true
	}
	if s.left.Add(-1) > 0 {
		return false
	}
	s.unlock()
	return true
}

// steer gives the groups of the first link's sockets their program.
func (s *shards) steer(how Steering, n int) error {
	for _, e := range s.links[0].eps {
		prog := program(how, e.addr.Is4(), uint32(n))
		err := unix.SetsockoptSockFprog(e.main.fd, unix.SOL_SOCKET, soAttachReuseportCBPF,
			&unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]})
		if err != nil {
			return fmt.Errorf("open UDP links on %v: steer by %v: %w", e.addr, how, os.NewSyscallError("setsockopt SO_ATTACH_REUSEPORT_CBPF", err))
		}
	}
	return nil
}

// program returns what makes an index below n of a packet.
func program(how Steering, v4 bool, n uint32) []unix.SockFilter {
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		spread = 0x9E3779B1 // 2^32 by the golden ratio (Knuth vol.3 6.4)
	)
	alu := func(op uint16, k uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_ALU | op | unix.BPF_K, K: k}
	}
	end := []unix.SockFilter{alu(unix.BPF_MOD, n), {Code: unix.BPF_RET | unix.BPF_A}}
	if how == SteerQPN {
		return append([]unix.SockFilter{
			{Code: load, K: qpnOffset}, // a packet without it: 0
			alu(unix.BPF_AND, groupQPN),
			{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: gsiQPN, Jt: 1},
			{Code: unix.BPF_RET | unix.BPF_K},
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: groupQPN, Jf: 1},
			{Code: unix.BPF_RET | unix.BPF_K},
		}, end...)
	}
	// The last words of the addresses, and that of the ports, from the IP header on
	// (linux/filter.h SKF_NET_OFF).
	const netOff = ^uint32(0x100000) + 1
	words := []uint32{12, 16, 20}
	if !v4 {
		words = []uint32{8 + 12, 24 + 12, 40}
	}
	if how == SteerAddresses {
		words = words[:2]
	}
	prog := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_IMM}}
	for _, w := range words {
		prog = append(prog, unix.SockFilter{Code: unix.BPF_MISC | unix.BPF_TAX},
			unix.SockFilter{Code: load, K: netOff + w}, unix.SockFilter{Code: unix.BPF_ALU | bpfXor | unix.BPF_X}, alu(unix.BPF_MUL, spread))
	}
	return append(append(prog, alu(unix.BPF_RSH, 16)), end...)
}

// index returns whose a packet is.
func (s *shards) index(b []byte) int {
	if len(b) < qpnOffset+4 {
		return 0
	}
	qpn := binary.BigEndian.Uint32(b[qpnOffset:]) & groupQPN
	if qpn <= gsiQPN || qpn == groupQPN {
		return 0
	}
	return int(qpn % uint32(len(s.links)))
}

func (s *shards) of(b []byte) *system { return s.links[s.index(b)] }

// misdirected counts what came out of the socket of e, and reports whether it
// holds packets of others. Each shard joins multicast groups for itself.
func (l *system) misdirected(e *endpoint, rx *frame.Rx) bool {
	packets := uint64(1)
	if rx.Seg > 0 {
		packets = uint64((len(rx.Data) + rx.Seg - 1) / rx.Seg)
	}
	l.cnt.RxSocket += packets
	return !e.addr.IsMulticast() && l.set.mixed(l.shard, rx)
}

// mixed reports whether a piece holds packets that are not of this shard.
func (s *shards) mixed(shard int, rx *frame.Rx) bool {
	for b := rx.Data; ; b = b[rx.Seg:] {
		if s.index(b) != shard {
			return true
		}
		if rx.Seg <= 0 || len(b) <= rx.Seg {
			return false
		}
	}
}

// sortOut hands over what of rx[0] is not of this shard, and keeps the rest in
// rx, from the start on. All is copied. It returns how many pieces it kept.
func (l *system) sortOut(rx []frame.Rx) (kept int) {
	piece := rx[0]
	seg := piece.Seg
	if seg <= 0 || seg > len(piece.Data) {
		seg = len(piece.Data)
	}
	for b := piece.Data; len(b) > 0; {
		shard := l.set.index(b)
		n, segs := min(seg, len(b)), 1
		for n < len(b) && l.set.index(b[n:]) == shard {
			n, segs = min(n+seg, len(b)), segs+1
		}
		part := piece
		part.Data, part.Seg = append(l.pool.Get()[:0], b[:n]...), 0
		if segs > 1 {
			part.Seg = seg
		}
		b = b[n:]
		if shard == l.shard && kept < len(rx) {
			l.lent = append(l.lent, part.Data)
			rx[kept] = part
			kept++
			continue
		}
		to := l.set.links[shard]
		if to != l {
			l.cnt.RxMisdirected += uint64(segs)
		}
		free, ok := to.inbox.push(&part)
		if !ok {
			l.cnt.RxDropped += uint64(segs)
			free = part.Data
		}
		l.pool.Put(free)
		to.poll.Nudge()
	}
	return kept
}

// inbox holds what the shards have for each other, and for themselves: a buffer
// moves in, and an empty one moves out for it, so that nobody runs short of
// buffers.
type inbox struct {
	mu    sync.Mutex
	queue ring.Queue
	free  [][]byte
	n     atomic.Int32 // pieces in queue; for those without mu
}

func (b *inbox) open() { b.queue = ring.NewQueue(localDepth) }

// push takes a piece and gives a free buffer for it; false means that the inbox
// is full and the piece still the caller's. Whoever pushes then nudges the link's
// poller. A free buffer may be nil where there
// is none yet.
func (b *inbox) push(rx *frame.Rx) (free []byte, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.queue.Push(*rx) {
		return nil, false
	}
	b.n.Store(int32(b.queue.Len()))
	if n := len(b.free); n > 0 {
		free, b.free = b.free[n-1], b.free[:n-1]
	}
	return free, true
}

// recvInbox takes what is in the inbox.
func (l *system) recvInbox(rx []frame.Rx, bytes *int) int {
	b := &l.inbox
	if b.n.Load() == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for n < len(rx) && b.queue.Len() > 0 && *bytes < rxBytes {
		rx[n] = b.queue.Pop()
		l.guests = append(l.guests, rx[n].Data)
		*bytes += len(rx[n].Data)
		n++
	}
	b.n.Store(int32(b.queue.Len()))
	return n
}

// sendOff gives the buffers of the inbox back to it, for who fills it next.
func (l *system) sendOff() {
	b := &l.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range l.guests {
		if cap(g) == ring.BufLen {
			b.free = append(b.free, g[:ring.BufLen])
		}
	}
	l.guests = slices.Delete(l.guests, 0, len(l.guests))
}
