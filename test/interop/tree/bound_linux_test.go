package tree

import (
	"bytes"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/export"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// The counters that the played kernel has bound to queue pairs are in a scrape that asks
// for queue pairs.
func TestBoundCountersAreExported(t *testing.T) {
	s, err := fleet().host()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := export.Text(export.New(func() *snapshot.Snapshot { return s }, export.Options{PerQP: 100}), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`rdma_qp_raw_total{device="mlx5_0",port="1",qpn="178",raw="rx_write_requests"} 7`,
		`rdma_qp_raw_total{device="mlx4_0",port="2",qpn="64",raw="b"} 1`,
		`rdma_bound_counter_qps{counter="6",device="mlx5_0",port="1"} 3`,
		`rdma_bound_counter_raw_total{counter="6",device="mlx5_0",port="1",raw="out_of_sequence"} 3`,
		`rdma_bound_counter_qps{counter="9",device="mlx5_0",port="1"} 0`,
	} {
		if !strings.Contains(out.String(), "\n"+want+"\n") {
			t.Errorf("there is no line %s", want)
		}
	}
}
