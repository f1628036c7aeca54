//go:build linux

package interop

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/test/interop/guest"
)

// account compares what both ends have counted since it was opened.
type account struct {
	h     *host
	there map[string]uint64
	here  map[string]uint64
}

// account opens an account once the queue pairs of earlier tests are gone: they might still send.
func (h *host) account() account {
	h.t.Helper()
	g := h.net.Guest(1)
	if err := g.Until(within(h.t, patience), "! rdma resource show qp | grep -qv 'type GSI'"); err != nil {
		h.t.Fatalf("the guest keeps queue pairs of an earlier test: %v", err)
	}
	return account{h: h, there: counters(h.t, g), here: h.counts()}
}

func (h *host) counts() map[string]uint64 {
	m := map[string]uint64{}
	for _, c := range h.dev.Stats() {
		m[c.Name] = c.Value
	}
	return m
}

// settle fails the test unless the guest comes to have received every packet that we have sent since the account was
// opened, and we every packet of the guest. The guest counts no packet to a queue pair that is gone: so this belongs
// before the moment from which it may go.
func (a account) settle() {
	t := a.h.t
	t.Helper()
	ctx := within(t, patience)
	for {
		after, here := counters(t, a.h.net.Guest(1)), a.h.counts()
		there, sentThere := after["rcvd_pkts"]-a.there["rcvd_pkts"], after["sent_pkts"]-a.there["sent_pkts"]
		rcvd, sent := here["rcvd_pkts"]-a.here["rcvd_pkts"], here["sent_pkts"]-a.here["sent_pkts"]
		if there == sent && rcvd == sentThere {
			return
		}
		if ctx.Err() != nil {
			t.Errorf("we sent %d packets and the guest received %d; it sent %d and we received %d; dropped: %v",
				sent, there, sentThere, rcvd, drops(a.h.net))
			return
		}
	}
}

func counters(t *testing.T, g *guest.Guest) map[string]uint64 {
	t.Helper()
	c, err := g.RxeCounters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// dropped says how many packets were dropped on the way since the network was made, by place; only places that have
// dropped some.
type dropped map[string]uint64

// since is what was dropped after before.
func (d dropped) since(before dropped) dropped {
	out := dropped{}
	for place, n := range d {
		if n != before[place] {
			out[place] = n - before[place]
		}
	}
	return out
}

func (d dropped) String() string {
	if len(d) == 0 {
		return "nothing in any queue"
	}
	var words []string
	for _, place := range slices.Sorted(maps.Keys(d)) {
		words = append(words, fmt.Sprintf("%d by %s", d[place], place))
	}
	return strings.Join(words, ", ")
}

// drops asks every queue between the ends: interfaces, sockets. What cannot be read counts as nothing: it explains a
// failure and is no verdict.
func drops(n *guest.Net) dropped {
	d := dropped{}
	_ = n.Do(func() error {
		for _, file := range []string{"dev", "snmp", "snmp6"} {
			if text, err := os.ReadFile("/proc/thread-self/net/" + file); err == nil {
				d.add("the host's", string(text))
			}
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if r, err := n.Guest(1).Run(ctx, "cat /proc/net/dev /proc/net/snmp /proc/net/snmp6"); err == nil {
		d.add("the guest's", r.Stdout)
	}
	return d
}

// add reads tables of /proc/net: rows of an interface, pairs of lines with names and values, and single values.
func (d dropped) add(whose, text string) {
	put := func(place, value string) {
		if n, err := strconv.ParseUint(value, 10, 64); err == nil && n > 0 {
			d[whose+" "+place] = n
		}
	}
	var names []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) == 17 && strings.HasSuffix(f[0], ":") && f[0] != "Tcp:":
			put(f[0]+" receive", f[4])
			put(f[0]+" transmit", f[12])
		case len(f) > 1 && f[0] == "Udp:":
			for i, name := range names {
				if i > 0 && i < len(f) && strings.HasSuffix(name, "Errors") {
					put("Udp"+name, f[i])
				}
			}
			names = f
		case len(f) == 2 && strings.HasPrefix(f[0], "Udp6") && strings.HasSuffix(f[0], "Errors"):
			put(f[0], f[1])
		}
	}
}

func TestDropsAreRead(t *testing.T) {
	d := dropped{}
	d.add("a", `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
 vtap1: 65697156   82855    0    7    0     0          0         0 60760474   98019    0    9    0     0       0          0
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
Udp: 44168 0 3 4543 3 0 0 0 0
Udp6InDatagrams                 	4
Udp6RcvbufErrors                	5
`)
	const want = "3 by a UdpInErrors, 3 by a UdpRcvbufErrors, 5 by a Udp6RcvbufErrors, 7 by a vtap1: receive, 9 by a vtap1: transmit"
	words := strings.Split(d.String(), ", ")
	slices.Sort(words)
	if got := strings.Join(words, ", "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
