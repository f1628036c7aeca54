package verbs

import (
	"net/netip"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/link"
)

// Queue describes a shard of a device: its socket, as an RNIC's receive queue,
// and what has passed through it.
type Queue struct {
	Index int
	// Socket are the addresses and the UDP port that it receives at; the shards of
	// a device receive at the same ones. Of a Link of one's own only the port is
	// meaningful.
	Socket []netip.AddrPort
	QPs    int // queue pairs now

	// SocketPackets came out of the socket; where there are no shards, these are
	// RcvdPackets.
	SocketPackets          uint64
	RcvdPackets, RcvdBytes uint64 // good packets, BTH to ICRC
	SentPackets, SentBytes uint64
	// Dropped packets were lost here: the receive buffer was full. Counted as
	// [link.Counters].RxDropped.
	Dropped uint64
	// Misdirected packets came to this socket, belonged to another shard and were
	// handed over to it.
	Misdirected uint64

	Stats Stats         // all counters of the shard's adapter
	Link  link.Counters // all counters of its link
}

// Queues returns the shards of a device, one for most devices; nil after Close.
func (d *Device) Queues() []Queue {
	var socket []netip.AddrPort
	for i := range d.gids {
		if g := &d.gids[i]; g.Unusable == "" {
			if at := netip.AddrPortFrom(g.GID.Addr(), d.port); len(socket) == 0 || socket[len(socket)-1] != at {
				socket = append(socket, at)
			}
		}
	}
	var qs []Queue
	for i, s := range d.shards {
		q := Queue{Index: i, Socket: socket}
		err := s.drv.Do(func(clock.Time) {
			q.QPs = s.adapter.QPs()
			q.Stats = s.adapter.Stats()
		})
		if err != nil {
			return nil
		}
		q.Link = s.link.Counters()
		q.RcvdPackets, q.RcvdBytes = q.Stats.Get("rcvd_pkts"), q.Stats.Get("rcvd_bytes")
		q.SentPackets, q.SentBytes = q.Stats.Get("sent_pkts"), q.Stats.Get("sent_bytes")
		if q.SocketPackets = q.Link.RxSocket; len(d.shards) == 1 {
			q.SocketPackets = q.RcvdPackets
		}
		q.Dropped, q.Misdirected = q.Link.RxDropped, q.Link.RxMisdirected
		qs = append(qs, q)
	}
	return qs
}
