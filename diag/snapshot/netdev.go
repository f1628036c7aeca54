package snapshot

// Netdev is a network interface.
type Netdev struct {
	Name             string        `json:"name"`
	Index            Value[int]    `json:"index,omitzero"`
	OperState        Value[string] `json:"operstate,omitzero"` // up, down, unknown, …
	Carrier          Value[bool]   `json:"carrier,omitzero"`
	CarrierChanges   Value[uint64] `json:"carrier_changes,omitzero"`
	CarrierDownCount Value[uint64] `json:"carrier_down_count,omitzero"`
	MTU              Value[int]    `json:"mtu,omitzero"`        // bytes
	SpeedMbps        Value[int64]  `json:"speed_mbps,omitzero"` // -1 for unknown
	Duplex           Value[string] `json:"duplex,omitzero"`
	MAC              Value[string] `json:"address,omitzero"`
	Driver           Value[string] `json:"driver,omitzero"` // also of a virtual one, veth
	PCI              *PCI          `json:"pci,omitempty"`
	Virtual          Value[bool]   `json:"virtual,omitzero"` // no device behind it
	Master           Value[string] `json:"master,omitzero"`  // bond or bridge it belongs to
	Bond             *Bond         `json:"bond,omitempty"`
	VLAN             Value[int]    `json:"vlan,omitzero"`
	VLANEgressQoS    Value[string] `json:"vlan_egress_qos,omitzero"`
	Parent           Value[string] `json:"parent,omitzero"` // of a VLAN
	Addresses        []Address     `json:"addresses,omitempty"`

	Statistics Counters               `json:"statistics,omitempty"`
	Ethtool    Counters               `json:"ethtool,omitempty"` // ethtool -S
	Why        string                 `json:"ethtool_why,omitempty"`
	Features   map[string]bool        `json:"features,omitempty"` // ethtool -k
	Rings      map[string]uint64      `json:"rings,omitempty"`    // rx, rx_max, tx, tx_max
	Channels   map[string]uint64      `json:"channels,omitempty"` // rx, tx, combined and _max
	Pause      Value[Pause]           `json:"pause,omitzero"`     // 802.3x link pause
	FlowHash   map[string]Value[Hash] `json:"flow_hash,omitempty"`
	FEC        Value[string]          `json:"fec,omitzero"`

	DCB DCB `json:"dcb,omitzero"`
}

// Address is an IP address of an interface.
type Address struct {
	Prefix string   `json:"prefix"` // 192.0.2.1/24
	Flags  []string `json:"flags,omitempty"`
}

// Bond is a bonding interface.
type Bond struct {
	Mode       Value[string] `json:"mode,omitzero"`
	Slaves     []string      `json:"slaves,omitempty"`
	HashPolicy Value[string] `json:"xmit_hash_policy,omitzero"`
	Active     Value[string] `json:"active_slave,omitzero"`
}

// Pause is 802.3x flow control of the whole link.
type Pause struct {
	Autoneg bool `json:"autoneg"`
	RX      bool `json:"rx"`
	TX      bool `json:"tx"`
}

// Hash is what receive-side scaling hashes of a flow type, the bits of
// ETHTOOL_GRXFH.
type Hash uint32

// Bits of Hash.
const (
	HashL2DA    Hash = 1 << 1
	HashVLAN    Hash = 1 << 2
	HashL3Proto Hash = 1 << 3
	HashSource  Hash = 1 << 4 // IP source address
	HashDest    Hash = 1 << 5 // IP destination address
	HashL4Src   Hash = 1 << 6 // bytes 0 and 1 of the transport header: source port
	HashL4Dst   Hash = 1 << 7 // bytes 2 and 3: destination port
	HashDiscard Hash = 1 << 31
)

// DCB is data-center bridging of an interface.
type DCB struct {
	DCBX    Value[[]string]   `json:"dcbx,omitzero"` // host, lld-managed, cee, ieee, static
	PFC     Value[PFC]        `json:"pfc,omitzero"`
	ETS     Value[ETS]        `json:"ets,omitzero"`
	Apps    Value[[]DCBApp]   `json:"app,omitzero"`
	Trust   Value[string]     `json:"trust,omitzero"` // dscp, pcp
	Buffer  Value[DCBBuffer]  `json:"buffer,omitzero"`
	MaxRate Value[[8]uint64]  `json:"maxrate,omitzero"`
	NP      Value[Congestion] `json:"roce_np,omitzero"` // notification point
	RP      Value[Congestion] `json:"roce_rp,omitzero"` // reaction point
	// Cable is the cable length in metres that the buffers are computed for.
	Cable Value[int] `json:"cable_len,omitzero"`
	// LLDPAgent is a program that may overwrite the settings, such as lldpad.
	LLDPAgent Value[string] `json:"lldp_agent,omitzero"`
}

// PFC is priority flow control, 802.1Qbb.
type PFC struct {
	Cap         int       `json:"pfc_cap"`
	Enabled     [8]bool   `json:"prio_pfc"`
	MBC         bool      `json:"macsec_bypass"`
	Delay       int       `json:"delay"`       // bit times
	Requests    [8]uint64 `json:"requests"`    // PFC frames sent
	Indications [8]uint64 `json:"indications"` // PFC frames received
}

// ETS is enhanced transmission selection, 802.1Qaz.
type ETS struct {
	Willing bool      `json:"willing"`
	Cap     int       `json:"ets_cap"`
	CBS     bool      `json:"cbs"`
	TCBW    [8]int    `json:"tc_bw"`   // per cent
	TSA     [8]string `json:"tc_tsa"`  // strict, cbs, ets, vendor
	PrioTC  [8]int    `json:"prio_tc"` // traffic class of a priority
}

// DCBApp is an entry of the application priority table.
type DCBApp struct {
	Selector string `json:"selector"` // ethtype, default, stream-port, dgram-port, port, dscp, pcp
	Priority int    `json:"priority"`
	Protocol int    `json:"protocol"`
}

// DCBBuffer is how the receive buffer of a port is cut.
type DCBBuffer struct {
	PrioBuffer [8]int    `json:"prio_buffer"`
	Size       [8]uint64 `json:"buffer_size"` // bytes
	Total      uint64    `json:"total_size"`  // bytes
}

// Congestion are the parameters of one end of DCQCN.
type Congestion struct {
	Enabled map[int]bool      `json:"enable,omitempty"` // by priority
	Params  map[string]uint64 `json:"params,omitempty"` // rpg_ai_rate, min_time_between_cnps, cnp_dscp, …
}
