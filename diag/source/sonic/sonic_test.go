package sonic_test

import (
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/source/sonic"
)

func TestTables(t *testing.T) {
	sw, err := sonic.Parse(map[string]string{
		sonic.PFCCounters: `  Port Rx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7
---------  ------  ------  ------  ------  ------  ------  ------  ------
Ethernet0   1,200     201     202     203     204     205     206     207
Ethernet4     N/A     401     402     403     404     405     406     407

  Port Tx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7
---------  ------  ------  ------  ------  ------  ------  ------  ------
Ethernet0       0       1       2  12,345,678     4       5       6       7
`,
		sonic.PFCWDStats: `      QUEUE       STATUS    STORM DETECTED/RESTORED    TX OK/DROP    RX OK/DROP    TX LAST OK/DROP    RX LAST OK/DROP
-----------  -----------  -------------------------  ------------  ------------  -----------------  -----------------
Ethernet0:3      stormed                    170/169       100/300       1,100/300              0/200              0/200
`,
	})
	if err != nil || len(sw.Ports) != 2 {
		t.Fatal(err, sw)
	}
	p := sw.Ports[0]
	if rx, _ := p.PFCRx.Get(); rx[0] != 1200 || rx[7] != 207 {
		t.Errorf("received %v", rx)
	}
	if tx, _ := p.PFCTx.Get(); tx[3] != 12345678 {
		t.Errorf("sent %v", tx)
	}
	if v := sw.Ports[1].PFCRx; v.IsKnown() || v.Why() != "N/A" {
		t.Errorf("N/A is %v", v)
	}
	if len(p.Queues) != 1 || p.Queues[0].Queue != 3 || p.Queues[0].Status != "stormed" || p.Queues[0].Detected != 170 || p.Queues[0].Restored != 169 || p.Queues[0].RxOK != 1100 || p.Queues[0].TxDrop != 300 {
		t.Errorf("watchdog %+v", p.Queues)
	}
}

func TestBadRowHasItsPlace(t *testing.T) {
	_, err := sonic.Parse(map[string]string{sonic.PFCCounters: "Port Rx PFC0\nEthernet0 1 2 3 x 5 6 7 8\n"})
	if err == nil || !strings.Contains(err.Error(), `show_pfc_counters.txt:2: port "Ethernet0", PFC3: "x" is no number`) {
		t.Error(err)
	}
}
