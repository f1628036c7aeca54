package sonic_test

import (
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/source/sonic"
)

// FuzzParse: whatever a switch printed, it is read or refused in one line, and no more
// ports come of it than it has lines.
func FuzzParse(f *testing.F) {
	f.Add("  Port Rx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7\nEthernet0   1,200     201     202     203     204     205     206     207\n", "      QUEUE       STATUS    STORM DETECTED/RESTORED    TX OK/DROP    RX OK/DROP    TX LAST OK/DROP    RX LAST OK/DROP\nEthernet0:3 stormed 170/169 100/300 1,100/300 0/200 0/200\n")
	f.Add("Port Tx PFC0\n\nEthernet0 N/A", "QUEUE STATUS\nE:9 x 1/ /2")
	f.Fuzz(func(t *testing.T, counters, stats string) {
		sw, err := sonic.Parse(map[string]string{sonic.PFCCounters: counters, sonic.PFCWDStats: stats})
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("not one line: %q", err)
			}
			return
		}
		if n := strings.Count(counters, "\n") + strings.Count(stats, "\n") + 2; len(sw.Ports) > n {
			t.Errorf("%d ports of %d lines", len(sw.Ports), n)
		}
	})
}
