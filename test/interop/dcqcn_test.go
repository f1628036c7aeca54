//go:build linux

package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/test/interop/netns"
	"github.com/verbena-rdma/verbena/verbs"
)

// DCQCN through a router of the kernel's making: two senders with an address
// each, a hop that tbf shapes to hopRate, and nftables that marks what comes in
// faster than markRate. Packets are single from the sender's interface on, so
// that marks and drops are of packets.

const (
	hopRate    = 1_000_000_000 // bits a second
	packetBits = 8 * (14 + 20 + 8 + 12 + 4096 + 4)
	markRate   = hopRate * 8 / 10 / packetBits // packets a second
	markBurst  = 5
	hopBuffer  = 100_000 // bytes; less than two windows of 128 KiB, which is what they begin with
	hopBurst   = 20_000
)

// hop is the network.
type hop struct {
	t                        *testing.T
	sender, router, receiver *netns.Space
}

func newHop(t *testing.T) *hop {
	h := &hop{t: t, sender: netns.New(t), router: netns.New(t), receiver: netns.New(t)}
	netns.Join(h.sender, "s0", h.router, "r0")
	netns.Join(h.router, "r1", h.receiver, "d0")
	for _, x := range []struct {
		s   *netns.Space
		dev string
	}{{h.sender, "s0"}, {h.router, "r0"}, {h.router, "r1"}, {h.receiver, "d0"}} {
		x.s.Run("ip link set "+x.dev+" mtu 4200", "ip link set "+x.dev+" gso_max_segs 1")
		x.s.OneQueue(x.dev)
	}
	h.sender.Run("ip addr add 10.8.1.1/24 dev s0", "ip addr add 10.8.1.2/24 dev s0", "ip route add default via 10.8.1.254")
	h.receiver.Run("ip addr add 10.8.2.1/24 dev d0", "ip route add default via 10.8.2.254")
	h.router.Run("ip addr add 10.8.1.254/24 dev r0", "ip addr add 10.8.2.254/24 dev r1", "sysctl -qw net.ipv4.ip_forward=1",
		"tc qdisc add dev r1 root tbf rate "+strconv.Itoa(hopRate)+"bit burst "+strconv.Itoa(hopBurst)+"b limit "+strconv.Itoa(hopBuffer)+"b")
	h.router.MarkOver(t, markRate, markBurst)
	return h
}

// drops returns how many packets the shaped hop has dropped.
func (h *hop) drops() uint64 {
	h.t.Helper()
	out, err := h.router.Output("tc", "-s", "qdisc", "show", "dev", "r1")
	_, rest, ok := strings.Cut(out, "(dropped ")
	num, _, ok2 := strings.Cut(rest, ",")
	n, err2 := strconv.ParseUint(num, 10, 64)
	if err := errors.Join(err, err2); err != nil || !ok || !ok2 {
		h.t.Fatalf("tc: %v\n%s", err, out)
	}
	return n
}

// hopEnd is a device at one end of the hop.
type hopEnd struct {
	t    *testing.T
	s    *netns.Space
	addr netip.Addr
	dev  *verbs.Device
	pd   *verbs.PD
	mr   *verbs.MR
}

func (h *hop) open(s *netns.Space, addr string, c verbs.DCQCN) *hopEnd {
	h.t.Helper()
	e := &hopEnd{t: h.t, s: s, addr: netip.MustParseAddr(addr)}
	var err error
	s.Do(func() { e.dev, err = verbs.Open(verbs.Config{Addr: e.addr, DCQCN: c}) })
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = e.dev.Close() })
	e.pd = e.dev.AllocPD()
	if e.mr, err = e.pd.RegisterMR(make([]byte, 1<<20), ib.AccessAll); err != nil {
		h.t.Fatal(err)
	}
	return e
}

// flow is a queue pair that writes as fast as it may.
type flow struct {
	from, to *hopEnd
	qp, peer *verbs.QP
	cq       *verbs.CQ
}

func (e *hopEnd) qp() (*verbs.QP, *verbs.CQ) {
	e.t.Helper()
	cq, err := e.dev.CreateCQ(verbs.CQConfig{Depth: 256})
	if err != nil {
		e.t.Fatal(err)
	}
	q, err := e.pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: cq, RecvCQ: cq})
	if err != nil {
		e.t.Fatal(err)
	}
	return q, cq
}

func newFlow(from, to *hopEnd) *flow {
	from.t.Helper()
	f := &flow{from: from, to: to}
	f.qp, f.cq = from.qp()
	f.peer, _ = to.qp()
	for _, x := range []struct {
		e, other *hopEnd
		q        *verbs.QP
		dest     ib.QPN
	}{{from, to, f.qp, f.peer.Num()}, {to, from, f.peer, f.qp.Num()}} {
		p := verbs.Path{DestQPN: x.dest, PSN: 7, LocalPSN: 7, GID: ib.GIDFromAddr(x.other.addr), TimeoutExp: 14, RetryCnt: 7, LateAck: true, TrafficClass: 26 << 2}
		var err error
		x.e.s.Do(func() { err = errors.Join(x.q.ToInit(ib.RemoteAll), x.q.ToRTR(p), x.q.ToRTS(p)) })
		if err != nil {
			from.t.Fatal(err)
		}
	}
	return f
}

const (
	messageBytes = 32 << 10
	outstanding  = 16
)

func (f *flow) write() ib.SendWR {
	return ib.SendWR{
		Op: ib.Write, Flags: ib.Signaled, SGL: f.from.mr.SGE(0, messageBytes),
		Remote: ib.Remote{Addr: f.to.mr.Addr(), RKey: f.to.mr.RKey()},
	}
}

// ran is what a flow did between two instants.
type ran struct {
	bytes uint64        // acknowledged
	gap   time.Duration // the longest without an acknowledgement
}

// run writes until ctx ends.
func (f *flow) run(ctx context.Context, from, to time.Time, r *ran) error {
	wr := f.write()
	for range outstanding {
		if err := f.qp.PostSend(wr); err != nil {
			return err
		}
	}
	var wcs [outstanding]ib.WC
	last := from
	for {
		n, err := f.cq.Wait(ctx, wcs[:])
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		if now := time.Now(); now.After(from) && now.Before(to) {
			r.bytes += uint64(n) * messageBytes
			r.gap = max(r.gap, now.Sub(last))
			last = now
		}
		for i := range wcs[:n] {
			if wcs[i].Status != ib.Success {
				return errors.New(wcs[i].Status.String())
			}
			if err := f.qp.PostSend(wr); err != nil {
				return err
			}
		}
	}
}

// writes posts n messages and waits for them.
func (f *flow) writes(ctx context.Context, n int) error {
	wr := f.write()
	var wcs [outstanding]ib.WC
	posted, done := 0, 0
	for done < n {
		for ; posted < n && posted-done < outstanding; posted++ {
			if err := f.qp.PostSend(wr); err != nil {
				return err
			}
		}
		k, err := f.cq.Wait(ctx, wcs[:])
		if err != nil {
			return err
		}
		for i := range wcs[:k] {
			if wcs[i].Status != ib.Success {
				return errors.New(wcs[i].Status.String())
			}
		}
		done += k
	}
	return nil
}

// The parameters of the paper are for 40 Gb/s: increases of 40 Mb/s are much at a
// fortieth of that.
func hopDCQCN() verbs.DCQCN {
	return verbs.DCQCN{Preset: "paper", LineRate: hopRate, Knobs: map[string]string{
		"rpg_ai_rate": "2Mbps", "rpg_hai_rate": "10Mbps", "rpg_time_reset": "300us", "rpg_min_rate": "10Mbps",
	}}
}

const (
	warmUp  = time.Second
	measure = 5 * time.Second
	// longGap between completions of a flow says that this host did not run it.
	longGap = 150 * time.Millisecond
)

// share is what one measurement of two flows has found.
type share struct {
	bits    [2]float64 // a second, acknowledged
	drops   uint64     // at the hop
	marked  uint64
	starved string // why the host, not the network, has decided
}

func (h *hop) share(c verbs.DCQCN) share {
	h.t.Helper()
	d := h.open(h.receiver, "10.8.2.1", c)
	flows := [2]*flow{newFlow(h.open(h.sender, "10.8.1.1", c), d), newFlow(h.open(h.sender, "10.8.1.2", c), d)}
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	from := time.Now().Add(warmUp)
	to := from.Add(measure)
	var got [2]ran
	done := make(chan error, 2)
	for i, f := range flows {
		go func() {
			err := f.run(ctx, from, to, &got[i])
			if err != nil {
				cancel()
			}
			done <- err
		}()
	}
	var r share
	wait := func(until time.Time) {
		select {
		case <-time.After(time.Until(until)):
		case <-ctx.Done():
		}
	}
	wait(from)
	before := h.drops()
	wait(to)
	r.drops = h.drops() - before
	late := time.Since(to)
	cancel()
	for range flows {
		if err := <-done; err != nil {
			h.t.Fatal(err)
		}
	}
	r.marked = d.dev.Stats().Get("np_ecn_marked_roce_packets")
	for i := range flows {
		r.bits[i] = float64(got[i].bytes) * 8 / measure.Seconds()
		if got[i].gap > longGap {
			r.starved = fmt.Sprintf("flow %d stood still for %v", i, got[i].gap)
		}
	}
	switch n := d.dev.LinkCounters().RxDropped; {
	case n > 0:
		r.starved = fmt.Sprintf("the receiver's socket dropped %d packets", n)
	case late > longGap:
		r.starved = fmt.Sprintf("the measurement ended %v late", late)
	case r.bits[0]+r.bits[1] < hopRate*4/10:
		r.starved = fmt.Sprintf("the flows had %.0f and %.0f Mb/s, too little for congestion", r.bits[0]/1e6, r.bits[1]/1e6)
	}
	for _, e := range []*verbs.Device{d.dev, flows[0].from.dev, flows[1].from.dev} {
		if err := e.Close(); err != nil {
			h.t.Error(err)
		}
	}
	return r
}

// Two flows through one hop share it within a tenth of each other, and what the
// hop drops after a second is at most a hundredth of what it drops without DCQCN.
func TestDCQCNSharesAHop(t *testing.T) {
	hurry(t)
	for try := 1; ; try++ {
		h := newHop(t)
		off := h.share(verbs.DCQCN{})
		on := h.share(hopDCQCN())
		t.Logf("off: %.0f and %.0f Mb/s, %d drops; on: %.0f and %.0f Mb/s, %d drops, %d packets marked",
			off.bits[0]/1e6, off.bits[1]/1e6, off.drops, on.bits[0]/1e6, on.bits[1]/1e6, on.drops, on.marked)
		starved := off.starved + on.starved
		if starved == "" && off.drops < 100 {
			starved = fmt.Sprintf("only %d drops without DCQCN, which says nothing", off.drops)
		}
		if starved != "" {
			if try == 8 {
				t.Fatalf("eight times the host had no time for this: %s", starved)
			}
			t.Logf("the host is starved: %s; again", starved)
			continue
		}
		if lo, hi := min(on.bits[0], on.bits[1]), max(on.bits[0], on.bits[1]); lo < 0.9*hi {
			t.Errorf("the flows had %.0f and %.0f Mb/s: more than a tenth apart", on.bits[0]/1e6, on.bits[1]/1e6)
		}
		if on.drops*100 > off.drops {
			t.Errorf("%d drops with DCQCN, %d without: more than a hundredth", on.drops, off.drops)
		}
		if off.marked != 0 || on.marked == 0 {
			t.Errorf("%d packets were marked with DCQCN, %d without, where they are not ECN-capable", on.marked, off.marked)
		}
		return
	}
}

// The notifications themselves, recorded at the router and read by tshark: the
// layout, to whom, with which code point, and how often.
func TestDCQCNNotificationsOnTheWire(t *testing.T) {
	judge.Need(t, "tshark", "tcpdump")
	h := newHop(t)
	h.router.MarkOver(t, 100, markBurst) // that is nearly all
	const interval = 10 * time.Millisecond
	c := hopDCQCN()
	c.Knobs["min_time_between_cnps"] = interval.String()
	c.Knobs["dce_tcp_rtt"] = "11ms"
	c.Knobs["rpg_min_rate"] = "100Mbps"
	d := h.open(h.receiver, "10.8.2.1", c)
	flows := [2]*flow{newFlow(h.open(h.sender, "10.8.1.1", c), d), newFlow(h.open(h.sender, "10.8.1.2", c), d)}

	name := filepath.Join(t.TempDir(), "cnp.pcap")
	stop := h.record(name, "r1", "in")
	ctx := within(t, patience)
	done := make(chan error, 2)
	for _, f := range flows {
		go func() { done <- f.writes(ctx, 250) }() // 8 MB at 100 Mb/s and more: up to 0.7 s
	}
	for range flows {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	end := time.Now()
	for i, f := range flows {
		q := f.qp.Congestion()
		if st := f.from.dev.Stats(); st.Get("rp_cnp_handled") != q.CNPsHandled || q.CNPsHandled == 0 || q.Cuts == 0 {
			t.Errorf("flow %d: the queue pair handled %d notifications in %d cuts, its device %d", i, q.CNPsHandled, q.Cuts, st.Get("rp_cnp_handled"))
		}
		if p := f.peer.Congestion(); p.CNPsSent == 0 || p.Marked < 4*p.CNPsSent {
			t.Errorf("flow %d: %d CNPs for %d marks", i, p.CNPsSent, p.Marked)
		}
	}
	sent := func() uint64 { return d.dev.Stats().Get("np_cnp_sent") }
	until(t, "all CNPs are recorded", func() bool {
		n := uint64(0)
		eachCNP(t, name, func([]byte) { n++ })
		return n >= sent() && time.Since(end) > 5*interval // the last marks are answered later
	})
	least := sent()
	stop()
	cnps := notifications(t, name)
	if n := uint64(len(cnps)); n < least || n > sent() || n == 0 {
		t.Errorf("%d CNPs sent, tshark finds %d", sent(), n)
	}
	at := map[ib.QPN][]float64{}
	for _, n := range cnps {
		at[n.qpn] = append(at[n.qpn], n.at)
	}
	for i, f := range flows {
		times := at[f.qp.Num()]
		delete(at, f.qp.Num())
		if len(times) < 5 {
			t.Errorf("flow %d: only %d CNPs", i, len(times))
			continue
		}
		// The first may have left late, and all that follow in time.
		const lateness = 50 * time.Millisecond
		span := times[len(times)-1] - times[0]
		if most := int((span+lateness.Seconds())/interval.Seconds()) + 1; len(times) > most {
			t.Errorf("flow %d: %d CNPs in %.3f s, can be %d: one in %v", i, len(times), span, most, interval)
		}
	}
	if len(at) != 0 {
		t.Errorf("CNPs to queue pairs that nobody has: %v", at)
	}
	checkICRCs(t, name, len(cnps))
}

// record records what an interface of the router receives ("in") or sends ("out")
// into a file, until the function is called that it returns.
func (h *hop) record(name, dev, direction string) (stop func()) {
	h.t.Helper()
	// What has been seen is in the file at once. Each packet takes the length that
	// -s says of the buffer.
	rec := exec.Command("tcpdump", "-i", dev, "-Q", direction, "-s", "2000", "-U", "--immediate-mode", "-B", "32768", "-w", name, "udp port 4791")
	text, err := rec.StderrPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.router.Start(rec); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = rec.Process.Kill() })
	line := bufio.NewScanner(text)
	for line.Scan() && !strings.Contains(line.Text(), "listening on") {
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for line.Scan() {
		}
	}()
	return func() {
		h.t.Helper()
		if err := rec.Process.Signal(os.Interrupt); err != nil {
			h.t.Fatal(err)
		}
		<-drained
		if err := rec.Wait(); err != nil {
			h.t.Fatalf("tcpdump: %v", err)
		}
	}
}

// notification is a CNP as tshark reads it.
type notification struct {
	at  float64 // seconds
	qpn ib.QPN
}

// notifications asks tshark for the CNPs of a recording, and checks what is the
// same in all (IBA vol.1 annex A17.9.3).
func notifications(t *testing.T, name string) []notification {
	t.Helper()
	out, err := exec.Command("tshark", "-r", name, "-Y", "infiniband.bth.opcode == 0x81", "-T", "fields", "-E", "separator=|",
		"-e", "frame.time_epoch", "-e", "infiniband.bth.destqp", "-e", "ip.dsfield.dscp", "-e", "ip.src", "-e", "infiniband.bth.psn", "-e", "udp.payload").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []notification
	for _, l := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		f := strings.Split(l, "|")
		if len(f) != 6 {
			t.Fatalf("tshark: %q", l)
		}
		at, err1 := strconv.ParseFloat(f[0], 64)
		qpn, err2 := strconv.ParseUint(f[1], 0, 24)
		payload, err3 := hex.DecodeString(strings.ReplaceAll(f[5], ":", ""))
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		if f[2] != "48" || f[3] != "10.8.2.1" || f[4] != "0" {
			t.Errorf("%q: DSCP must be 48, source 10.8.2.1, PSN 0", l)
		}
		const bth, reserved, icrc = 12, 16, 4
		if len(payload) != bth+reserved+icrc || !bytes.Equal(payload[bth:bth+reserved], make([]byte, reserved)) {
			t.Errorf("%q: not 12 bytes of BTH, 16 zeros and the ICRC", l)
		}
		all = append(all, notification{at, ib.QPN(qpn)})
	}
	return all
}

// eachCNP calls f with the CNPs of a recording.
func eachCNP(t *testing.T, name string, f func(frame []byte)) {
	t.Helper()
	eachPacket(t, name, func(frame []byte) {
		if len(frame) >= ethLen+ipLen+udpLen+cnpLen && frame[ethLen+ipLen+udpLen] == 0x81 {
			f(frame)
		}
	})
}

const ethLen, ipLen, udpLen, cnpLen = 14, 20, 8, 32

// checkICRCs computes the ICRC of the CNPs of a recording as the specification
// has it (IBA vol.1 annex A17.3.3), by nothing of ours.
func checkICRCs(t *testing.T, name string, want int) {
	t.Helper()
	n := 0
	eachCNP(t, name, func(frame []byte) {
		n++
		p := bytes.Clone(frame[ethLen : ethLen+ipLen+udpLen+cnpLen])
		for _, i := range []int{1, 8, 10, 11, ipLen + 6, ipLen + 7, ipLen + udpLen + 4} { // TOS, TTL, checksums, and BTH's resv8a
			p[i] = 0xFF
		}
		end := len(p) - 4
		crc := crc32.ChecksumIEEE(append(bytes.Repeat([]byte{0xFF}, 8), p[:end]...))
		if got := binary.LittleEndian.Uint32(p[end:]); got != crc {
			t.Errorf("CNP %d: ICRC %#x, must be %#x: % x", n, got, crc, frame)
		}
	})
	if n != want {
		t.Errorf("%d CNPs in the recording, tshark found %d", n, want)
	}
}

// hurry gives all threads of this process the highest priority that is not real
// time until the test ends: what is measured is the network, not the scheduler.
// Where the host does not let it, the test goes on without: a starved
// measurement is recognised as one.
func hurry(t *testing.T) {
	t.Helper()
	set := func(value int) {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Logf("no priority: %v", err)
		}
		for _, e := range tasks {
			tid, err := strconv.Atoi(e.Name())
			if err == nil {
				err = unix.Setpriority(unix.PRIO_PROCESS, tid, value)
			}
			if err != nil && !errors.Is(err, unix.ESRCH) {
				t.Logf("priority of thread %s: %v", e.Name(), err)
			}
		}
	}
	was, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Logf("no priority: %v", err)
		return
	}
	// Where the scheduler groups by session, threads have their priority within
	// the group, and the group has its own. A session without a group has an
	// empty file.
	const group = "/proc/self/autogroup"
	text, _ := os.ReadFile(group)
	if _, old, ok := strings.Cut(strings.TrimSpace(string(text)), " nice "); ok {
		if err := os.WriteFile(group, []byte("-20"), 0); err != nil {
			t.Logf("no priority for the session: %v", err)
		}
		t.Cleanup(func() { _ = os.WriteFile(group, []byte(old), 0) })
	}
	set(-20)
	t.Cleanup(func() { set(20 - was) }) // the system call tells 20 less the value
}
