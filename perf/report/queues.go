package report

import (
	"fmt"

	"github.com/verbena-rdma/verbena/verbs"
)

// AppendQueues appends a table of a device's queues: one for each shard.
//
// "from socket" are the packets that came out of the queue's socket, "received"
// those that its queue pairs got, "misdirected" those that belonged to another
// queue and were handed over, "dropped" those that found the socket full.
func AppendQueues(b []byte, qs []verbs.Queue) []byte {
	b = append(b, "\tqueues:\n"...)
	for i := range qs {
		if i == 0 {
			for _, s := range qs[i].Socket {
				b = fmt.Appendf(b, "\t\tsocket:\t%v\n", s)
			}
			b = fmt.Appendf(b, "\t\t%5s %6s %12s %12s %14s %12s %14s %11s %8s\n",
				"queue", "QPs", "from socket", "received", "bytes", "sent", "bytes", "misdirected", "dropped")
		}
		q := &qs[i]
		b = fmt.Appendf(b, "\t\t%5d %6d %12d %12d %14d %12d %14d %11d %8d\n",
			q.Index, q.QPs, q.SocketPackets, q.RcvdPackets, q.RcvdBytes, q.SentPackets, q.SentBytes, q.Misdirected, q.Dropped)
	}
	return b
}
