package probe

import (
	"fmt"
	"time"
)

// retryTime tells how long a requester tries: 4.096 µs × 2^timeout for each of
// retry_cnt + 1 times (IBA vol.1 9.9.2.1).
const retryTime = "(retry_cnt + 1) × 4.096 µs × 2^timeout, at least 0.5 s for retry_cnt 7 and timeout 14, up to four times that"

// blockedEffect is what becomes of queue pairs when packets one way never
// arrive.
func blockedEffect(s side) Effect {
	return Effect{
		What: fmt.Sprintf("RC set up over TCP reaches RTS at both ends, for nothing is sent on the way; then requests of %s never arrive, and requests of %s arrive and are carried out but their ACKs are lost: "+
			"both fail after %s. With RDMA-CM the connection does not come up: REQ or REP is lost (RDMA_CM_EVENT_UNREACHABLE). UC and UD lose everything without an error", s.from, s.to, retryTime),
		State:      fmt.Sprintf("RTS, then ERR; with RDMA-CM INIT where %s connects, and RTR at %s where %s connects", s.from, s.from, s.to),
		Completion: "IBV_WC_RETRY_EXC_ERR (12), then IBV_WC_WR_FLUSH_ERR (5) for the rest",
		Counters: []string{
			"requester, either end: local_ack_timeout_err, req_transport_retries_exceeded (mlx5), retry_exceeded_err (rxe)",
			fmt.Sprintf("responder at %s: nothing; responder at %s: duplicate_request", s.to, s.from),
		},
	}
}

// bothBlockedEffect is the same for both directions.
func bothBlockedEffect() Effect {
	return Effect{
		What: "RC set up over TCP reaches RTS at both ends, for nothing is sent on the way; the first request fails after " + retryTime +
			". With RDMA-CM the connection does not come up (RDMA_CM_EVENT_UNREACHABLE). UC and UD lose everything without an error",
		State:      "RTS, then ERR; with RDMA-CM INIT",
		Completion: "IBV_WC_RETRY_EXC_ERR (12), then IBV_WC_WR_FLUSH_ERR (5) for the rest",
		Counters:   []string{"requester: local_ack_timeout_err, req_transport_retries_exceeded (mlx5), retry_exceeded_err (rxe)", "responder: nothing"},
	}
}

// icrcEffect is what becomes of packets that are changed on the way.
func icrcEffect(s side) Effect {
	return Effect{
		What:  "the RNIC drops every such packet: as if the way were blocked",
		State: "RTS, then ERR; with RDMA-CM INIT", Completion: "IBV_WC_RETRY_EXC_ERR (12)",
		Counters: []string{fmt.Sprintf("%s: rx_icrc_encapsulated (mlx5), drop_icrc (Verbena)", s.to), "requester: local_ack_timeout_err, req_transport_retries_exceeded (mlx5), retry_exceeded_err (rxe)"},
	}
}

// bitRate writes a rate with its unit.
func bitRate(bps int64) string {
	switch {
	case bps >= 1_000_000_000:
		return fmt.Sprintf("%.3g Gbit/s", float64(bps)/1e9)
	case bps >= 1_000_000:
		return fmt.Sprintf("%.3g Mbit/s", float64(bps)/1e6)
	}
	return fmt.Sprintf("%.3g kbit/s", float64(bps)/1e3)
}

// serial is how long 1 MiB takes at a rate.
func serial(bps int64) string {
	return time.Duration(float64(8<<20) / float64(max(bps, 1)) * 1e9).Round(time.Millisecond).String()
}
