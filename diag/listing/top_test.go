package listing

import (
	"regexp"
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

// A name that has no room loses its middle, and an ellipsis says so: what devices and
// queue pairs differ in stays. Where there is room it is whole. Nothing in a name moves
// the cursor. A terminal of 40 columns and 10 rows is filled and not more.
func TestTopLongNames(t *testing.T) {
	at := func(second int, n uint64) *snapshot.Snapshot {
		s := &snapshot.Snapshot{Host: k("a-host-with-a-very-long-name.example.com"), Taken: time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC)}
		for _, name := range []string{"vrb_enp3s0f0np0-25085", "vrb_enp3s0f0np0-25086", "mlx\x1b[2J5"} {
			s.Devices = append(s.Devices, snapshot.Device{
				Name: name, Kind: snapshot.Verbena, PID: 1, Comm: "a-program-of-a-long-name",
				Ports: []snapshot.Port{{Number: 1, HWCounters: snapshot.Counters{{Name: "sent_bytes", Value: k(n)}}}},
				QPs:   k([]snapshot.QP{{LQPN: 16777215, Type: "RC", State: "RTS", Counters: snapshot.Counters{{Name: "sent_bytes", Value: k(n)}}}}),
			})
		}
		return s
	}
	w := snapshot.Window{Before: at(0, 0), After: at(1, 1e9)}
	for _, width := range []int{40, 80, 200, 0} {
		text := string(Top(w, width, 0))
		for _, end := range []string{"25085/1 ", "25086/1 ", ":16777215 "} {
			if !strings.Contains(text, end) {
				t.Errorf("%d columns: no %q in\n%s", width, end, text)
			}
		}
		whole := strings.Contains(text, "vrb_enp3s0f0np0-25085/1 ") && strings.Contains(text, "vrb_enp3s0f0np0-25085:16777215 ")
		if cut := regexp.MustCompile(`vrb_\w*…`).MatchString(text); whole == cut || whole != (width == 200 || width == 0) {
			t.Errorf("%d columns: whole %v, cut %v:\n%s", width, whole, cut, text)
		}
		if strings.Contains(text, "\x1b") {
			t.Errorf("%d columns: %q", width, text)
		}
	}
	small := strings.Split(strings.TrimSuffix(string(Top(w, 40, 10)), "\n"), "\n")
	if len(small) != 10 || !strings.Contains(small[9], "more lines") || !strings.HasSuffix(small[0], "…") {
		t.Errorf("%d lines:\n%s", len(small), strings.Join(small, "\n"))
	}
	for _, l := range small {
		if len([]rune(l)) > 40 {
			t.Errorf("%q has more than 40 columns", l)
		}
	}
}
