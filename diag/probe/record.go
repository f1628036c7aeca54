package probe

import "net/netip"

// Probe is one packet that an end is to send.
type Probe struct {
	Seq  uint32 `json:"seq"`            // unique in its direction and session
	Path uint8  `json:"path"`           // index of the source port
	TOS  uint8  `json:"tos"`            // DSCP and ECN
	Size int    `json:"size"`           // of the IP packet, in bytes: MinSize to MaxSize, a multiple of 4
	Echo bool   `json:"echo,omitempty"` // the listener shall answer with a packet of the same size
}

// Sent is what became of a Probe at its sender.
type Sent struct {
	Seq  uint32 `json:"seq"`
	At   int64  `json:"at"`            // ns since 1970, the sender's clock
	Port uint16 `json:"port"`          // source port used
	Err  string `json:"err,omitempty"` // errno's name: it did not leave
}

// Sighting is a packet as the other end saw it.
type Sighting struct {
	Seq     uint32 `json:"seq"`
	At      int64  `json:"at"`    // ns since 1970, the receiver's clock
	Order   uint32 `json:"order"` // counts arrivals in the session
	Path    uint8  `json:"path"`
	TOS     uint8  `json:"tos"`
	TTL     uint8  `json:"ttl"`
	Size    int    `json:"size"`
	Port    uint16 `json:"port"`              // source port
	Socket  int    `json:"socket,omitempty"`  // how often the UDP socket had it
	Capture int    `json:"capture,omitempty"` // how often the packet socket had it
	DF      int8   `json:"df"`                // don't-fragment: 1, 0, or -1 if not seen
	Cut     int    `json:"cut,omitempty"`     // it came in fragments: bytes of the largest
	ICRC    int8   `json:"icrc"`              // 1 right, 0 wrong
	From    string `json:"from,omitempty"`    // the source address, where it is not the peer's
}

// Notice counts ICMP errors of one kind from one place.
type Notice struct {
	What  string     `json:"what"` // "too big", "port unreachable", "prohibited", …
	From  netip.Addr `json:"from"` // who sent it
	MTU   int        `json:"mtu,omitempty"`
	Count int        `json:"count"`
}

// maxNotices bounds the kinds and places that are kept.
const maxNotices = 64

// note adds n to a list.
func note(list []Notice, n Notice) []Notice {
	for i := range list {
		if list[i].What == n.What && list[i].From == n.From && list[i].MTU == n.MTU {
			list[i].Count += n.Count
			return list
		}
	}
	if len(list) >= maxNotices {
		return list
	}
	return append(list, n)
}
