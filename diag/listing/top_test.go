package listing

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Two seconds in which a port sent 25 Gbit, was paused half of the time in priority 3,
// and met trouble.
func TestTop(t *testing.T) {
	at := func(second int, tx, retrans, cnp, pause, us uint64) *snapshot.Snapshot {
		return &snapshot.Snapshot{
			Host: k("h"), Taken: time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC),
			Devices: []snapshot.Device{{Name: "mlx5_0", Ports: []snapshot.Port{{
				Number: 1, Counters: snapshot.Counters{{Name: "port_rcv_data", Value: k(uint64(0))}, {Name: "port_xmit_data", Value: k(tx)}},
				HWCounters: snapshot.Counters{{Name: "np_cnp_sent", Value: k(cnp)}, {Name: "packet_seq_err", Value: k(retrans)}},
			}}}},
			Netdevs: []snapshot.Netdev{{Name: "eth0", Ethtool: snapshot.Counters{{Name: "rx_prio3_pause", Value: k(pause)}, {Name: "rx_prio3_pause_duration", Value: k(us)}}}},
		}
	}
	w := snapshot.Window{Before: at(0, 0, 0, 0, 0, 0), After: at(2, 25e9/32, 3, 40, 1000, 1e6)}
	const want = `verbena top  h  03:04:02  over 2s

PORT               TX Gb/s   RX Gb/s  RETRANS      OOS      CNP      ECN
mlx5_0/1            12.500     0.000      1.5        -       20        -

PAUSE             PRIORITY      RX/s     TX/s     RX %     TX %
eth0                     3       500        -     50.0        -
`
	if diff := cmp.Diff(want, string(Top(w, 80, 0))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for _, width := range []int{1, 20, 40} {
		for l := range strings.Lines(string(Top(w, width, 3))) {
			if len([]rune(strings.TrimSuffix(l, "\n"))) > width {
				t.Errorf("%d columns: %q", width, l)
			}
		}
	}
	if n := strings.Count(string(Top(w, 80, 4)), "\n"); n != 4 {
		t.Errorf("%d lines where 4 fit", n)
	}
}
