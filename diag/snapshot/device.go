package snapshot

// Kind says who makes a device.
type Kind string

// Kinds. A device of hardware bypasses the kernel's network stack: firewall, RSS
// and socket buffers of the host do not concern it.
const (
	Hardware Kind = "hardware"
	RXE      Kind = "rxe"
	SIW      Kind = "siw"
	Verbena  Kind = "verbena" // ours, in some process of this host
	Sim      Kind = "sim"     // ours, in the simulator
)

// Software reports whether the packets of such a device go through the kernel's
// network stack.
func (k Kind) Software() bool { return k == RXE || k == SIW || k == Verbena }

// Device is an RDMA device.
type Device struct {
	Name         string        `json:"name"`
	Index        Value[int]    `json:"index,omitzero"` // of the kernel
	Kind         Kind          `json:"kind,omitempty"`
	Driver       Value[string] `json:"driver,omitzero"`    // mlx5_core, bnxt_re, rdma_rxe
	NodeType     Value[int]    `json:"node_type,omitzero"` // 1 CA, 2 switch, 3 router, 4 RNIC
	Protocol     Value[string] `json:"protocol,omitzero"`  // ib, roce, iw, usnic
	NodeGUID     Value[string] `json:"node_guid,omitzero"` // 946d:ae03:0090:7832
	SysImageGUID Value[string] `json:"sys_image_guid,omitzero"`
	Firmware     Value[string] `json:"fw_ver,omitzero"`
	BoardID      Value[string] `json:"board_id,omitzero"`
	HCAType      Value[string] `json:"hca_type,omitzero"`
	HWRev        Value[string] `json:"hw_rev,omitzero"`
	NodeDesc     Value[string] `json:"node_desc,omitzero"`
	PCI          *PCI          `json:"pci,omitempty"`
	UVerbs       Value[string] `json:"uverbs,omitzero"` // uverbs0
	ABI          Value[int]    `json:"abi,omitzero"`
	Attr         Value[Attr]   `json:"attr,omitzero"`

	Ports    []Port   `json:"ports"`
	Counters Counters `json:"counters,omitempty"` // hw_counters of the device itself

	Resources map[string]uint64     `json:"resources,omitempty"` // objects by kind: qp, cq, mr, pd, cm_id, ctx, srq
	QPStates  []QPCount             `json:"qp_states,omitempty"` // of our own devices, where QPs is not asked for
	QPs       Value[[]QP]           `json:"qps,omitzero"`
	CQs       Value[[]CQ]           `json:"cqs,omitzero"`
	MRs       Value[[]MR]           `json:"mrs,omitzero"`
	PDs       Value[[]PD]           `json:"pds,omitzero"`
	CMIDs     Value[[]CMID]         `json:"cm_ids,omitzero"`
	SRQs      Value[[]SRQ]          `json:"srqs,omitzero"`
	Contexts  Value[[]Context]      `json:"contexts,omitzero"`
	Bound     Value[[]BoundCounter] `json:"bound_counters,omitzero"`
	Queues    []Queue               `json:"queues,omitempty"` // of our own devices
	Faults    []Fault               `json:"faults,omitempty"` // put into our own devices on purpose

	// PID and Comm are the process that holds a device of ours.
	PID  int    `json:"pid,omitempty"`
	Comm string `json:"comm,omitempty"`
}

// PCI is where a device sits. Speeds are as sysfs has them, "16.0 GT/s PCIe".
type PCI struct {
	Address      string            `json:"address,omitempty"` // 0000:3b:00.0
	Vendor       Value[string]     `json:"vendor,omitzero"`   // 0x15b3
	Device       Value[string]     `json:"device,omitzero"`
	NUMANode     Value[int]        `json:"numa_node,omitzero"` // -1 for none
	LocalCPUs    Value[string]     `json:"local_cpulist,omitzero"`
	LinkSpeed    Value[string]     `json:"link_speed,omitzero"`
	LinkWidth    Value[int]        `json:"link_width,omitzero"`
	MaxLinkSpeed Value[string]     `json:"max_link_speed,omitzero"`
	MaxLinkWidth Value[int]        `json:"max_link_width,omitzero"`
	Virtual      Value[bool]       `json:"virtual_function,omitzero"`
	AER          map[string]uint64 `json:"aer,omitempty"` // errors by name
}

// Attr are the attributes that ibv_query_device and ibv_query_port give and sysfs
// does not have. Names are those of ibv_devinfo -v.
type Attr map[string]uint64

// Port is a port of a device.
type Port struct {
	Number    int           `json:"port"`
	State     Value[int]    `json:"state,omitzero"`      // 1 DOWN, 2 INIT, 3 ARMED, 4 ACTIVE, 5 ACTIVE_DEFER
	PhysState Value[int]    `json:"phys_state,omitzero"` // 1 Sleep, 2 Polling, 3 Disabled, 4 Training, 5 LinkUp, 6 ErrorRecovery, 7 PhyTest
	Rate      Value[string] `json:"rate,omitzero"`       // as sysfs has it, "100 Gb/sec (4X EDR)"
	RateMbps  Value[int64]  `json:"rate_mbps,omitzero"`
	Width     Value[int]    `json:"width,omitzero"`      // code of IBA 14.2.5.6
	Speed     Value[int]    `json:"speed,omitzero"`      // code
	LinkLayer Value[string] `json:"link_layer,omitzero"` // Ethernet, InfiniBand
	LID       Value[int]    `json:"lid,omitzero"`
	LMC       Value[int]    `json:"lmc,omitzero"`
	SMLID     Value[int]    `json:"sm_lid,omitzero"`
	SMSL      Value[int]    `json:"sm_sl,omitzero"`
	CapMask   Value[uint32] `json:"cap_mask,omitzero"`
	MaxMTU    Value[int]    `json:"max_mtu,omitzero"`    // bytes: 256 to 4096
	ActiveMTU Value[int]    `json:"active_mtu,omitzero"` // bytes
	Netdev    Value[string] `json:"netdev,omitzero"`
	NetIndex  Value[int]    `json:"netdev_index,omitzero"`
	GIDs      []GID         `json:"gids,omitempty"` // in the order of their index; empty slots are left out
	GIDSlots  Value[int]    `json:"gid_tbl_len,omitzero"`
	PKeys     []uint16      `json:"pkeys,omitempty"`

	Counters   Counters   `json:"counters,omitempty"`    // counters/, data counters in 4-byte words
	HWCounters Counters   `json:"hw_counters,omitempty"` // names of the driver
	LifespanMs Value[int] `json:"lifespan_ms,omitzero"`
	// Statistics are the hardware counters as netlink has them, in the order of the
	// driver; nil where it has none.
	Statistics Counters `json:"statistics,omitempty"`
	StatMode   StatMode `json:"stat_mode,omitzero"`
	Attr       Attr     `json:"attr,omitempty"`

	CMRoCEMode   Value[string] `json:"default_roce_mode,omitzero"` // IB/RoCE v1, RoCE v2
	CMTOS        Value[int]    `json:"default_roce_tos,omitzero"`
	TrafficClass Value[int]    `json:"traffic_class,omitzero"` // forced for all QPs of the device
}

// StatMode is how a port counts beside its fixed counters.
type StatMode struct {
	QP       Value[string]     `json:"qp,omitzero"`        // counters of queue pairs, as rdma statistic qp mode: "qp auto off"
	Optional []OptionalCounter `json:"optional,omitempty"` // those that can be switched on
}

// OptionalCounter is a counter that is off unless somebody has switched it on.
type OptionalCounter struct {
	Name string `json:"name"`
	On   bool   `json:"on"`
}

// GID is a row of the GID table.
type GID struct {
	Index  int           `json:"index"`
	GID    string        `json:"gid"`           // 39 characters, as sysfs has it
	Type   Value[string] `json:"type,omitzero"` // IB/RoCE v1, RoCE v2
	Netdev Value[string] `json:"netdev,omitzero"`
}

// Counter is a counter under the name of its source.
type Counter struct {
	Name  string        `json:"name"`
	Value Value[uint64] `json:"value"`
}

// Counters are in the order of their names.
type Counters []Counter

// Get returns the counter of a name; absent if there is none.
func (c Counters) Get(name string) Value[uint64] {
	for i := range c {
		if c[i].Name == name {
			return c[i].Value
		}
	}
	return Value[uint64]{}
}

// QP is a queue pair. Words are those of the rdma tool: type RC, UC, UD, GSI; state
// RESET, INIT, RTR, RTS, SQD, SQE, ERR.
type QP struct {
	Port     int           `json:"port,omitempty"` // 0 before the QP has one
	LQPN     uint32        `json:"lqpn"`
	RQPN     Value[uint32] `json:"rqpn,omitzero"`
	Type     string        `json:"type"`
	State    string        `json:"state"`
	RQPSN    Value[uint32] `json:"rq_psn,omitzero"`
	SQPSN    Value[uint32] `json:"sq_psn,omitzero"`
	PathMig  Value[string] `json:"path_mig_state,omitzero"`
	PDN      Value[uint32] `json:"pdn,omitzero"`
	PID      Value[int]    `json:"pid,omitzero"`
	Comm     string        `json:"comm,omitempty"`
	IsKernel bool          `json:"kernel,omitempty"`

	// What the kernel's dump lacks and our own devices tell, or a log.
	PathMTU      Value[int]    `json:"path_mtu,omitzero"` // bytes
	GIDIndex     Value[int]    `json:"gid_index,omitzero"`
	TrafficClass Value[int]    `json:"traffic_class,omitzero"`
	RemoteGID    Value[string] `json:"remote_gid,omitzero"`
	SourcePort   Value[int]    `json:"source_port,omitzero"`
	Counters     Counters      `json:"counters,omitempty"`
	Reaction     *Reaction     `json:"dcqcn,omitempty"` // nil where DCQCN is off or not known
}

// QPCount is how many queue pairs of a type are in a state; words are those of [QP].
type QPCount struct {
	Port  int    `json:"port,omitempty"` // 0 before they have one
	Type  string `json:"type"`
	State string `json:"state"`
	N     uint64 `json:"n"`
}

// Reaction is the reaction point of a queue pair (SIGCOMM'15 DCQCN §3). Rates are in
// bits a second.
type Reaction struct {
	Preset    string  `json:"preset"`
	LineRate  uint64  `json:"line_rate"`
	Rate      uint64  `json:"rate"`      // at which it may send: R_C, or its rate limit if lower
	Rc        uint64  `json:"rc"`        // current rate
	Rt        uint64  `json:"rt"`        // target rate
	Alpha     float64 `json:"alpha"`     // 0 to 1
	Phase     string  `json:"phase"`     // of its recovery
	Cuts      uint64  `json:"cuts"`      // steps since it began: rate cuts,
	Recovered uint64  `json:"recovered"` // of fast recovery,
	Additive  uint64  `json:"additive"`  // of additive
	Hyper     uint64  `json:"hyper"`     // and of hyper increase
}

// Fault is a rule by which a device of ours drops, delays or changes packets.
type Fault struct {
	Rule string `json:"rule"`
	Met  uint64 `json:"met"`  // packets that met its conditions
	Hits uint64 `json:"hits"` // of them, those it acted on
}

// CQ is a completion queue.
type CQ struct {
	CQN         uint32        `json:"cqn"`
	CQE         uint32        `json:"cqe"`
	Users       Value[uint64] `json:"users,omitzero"`
	PollCtx     Value[string] `json:"poll_ctx,omitzero"` // DIRECT, SOFTIRQ, WORKQUEUE, UNBOUND_WORKQUEUE
	AdaptiveMod Value[bool]   `json:"adaptive_moderation,omitzero"`
	CTXN        Value[uint32] `json:"ctxn,omitzero"`
	PID         Value[int]    `json:"pid,omitzero"`
	Comm        string        `json:"comm,omitempty"`
	IsKernel    bool          `json:"kernel,omitempty"`
}

// MR is a memory region; keys are shown to root only.
type MR struct {
	MRN      uint32        `json:"mrn"`
	Length   uint64        `json:"mrlen"` // bytes
	IOVA     Value[uint64] `json:"iova,omitzero"`
	LKey     Value[uint32] `json:"lkey,omitzero"`
	RKey     Value[uint32] `json:"rkey,omitzero"`
	PDN      Value[uint32] `json:"pdn,omitzero"`
	PID      Value[int]    `json:"pid,omitzero"`
	Comm     string        `json:"comm,omitempty"`
	IsKernel bool          `json:"kernel,omitempty"`
}

// PD is a protection domain.
type PD struct {
	PDN      uint32        `json:"pdn"`
	LocalKey Value[uint32] `json:"local_dma_lkey,omitzero"`
	Users    Value[uint64] `json:"users,omitzero"`
	CTXN     Value[uint32] `json:"ctxn,omitzero"`
	PID      Value[int]    `json:"pid,omitzero"`
	Comm     string        `json:"comm,omitempty"`
	IsKernel bool          `json:"kernel,omitempty"`
}

// CMID is a connection identifier of the RDMA connection manager.
type CMID struct {
	CMIDN    uint32        `json:"cm_idn"`
	Port     int           `json:"port,omitempty"`
	LQPN     Value[uint32] `json:"lqpn,omitzero"`
	Type     Value[string] `json:"type,omitzero"`     // of the QP
	State    Value[string] `json:"state,omitzero"`    // IDLE, LISTEN, CONNECT, …
	PS       Value[string] `json:"ps,omitzero"`       // port space: IPoIB, IB, TCP, UDP
	Source   Value[string] `json:"src_addr,omitzero"` // address:port
	Dest     Value[string] `json:"dst_addr,omitzero"`
	PID      Value[int]    `json:"pid,omitzero"`
	Comm     string        `json:"comm,omitempty"`
	IsKernel bool          `json:"kernel,omitempty"`
}

// SRQ is a shared receive queue.
type SRQ struct {
	SRQN uint32        `json:"srqn"`
	Type Value[string] `json:"type,omitzero"`
	PDN  Value[uint32] `json:"pdn,omitzero"`
	CQN  Value[uint32] `json:"cqn,omitzero"`
	PID  Value[int]    `json:"pid,omitzero"`
	Comm string        `json:"comm,omitempty"`
	// LQPNs are the queue pairs that take their receives from it, ranges inclusive.
	LQPNs [][2]uint32 `json:"lqpns,omitempty"`
}

// Context is a user context of a device.
type Context struct {
	CTXN uint32     `json:"ctxn"`
	PID  Value[int] `json:"pid,omitzero"`
	Comm string     `json:"comm,omitempty"`
}

// BoundCounter is a set of counters that counts some queue pairs of a port alone, as rdma
// statistic qp set and bind make them.
type BoundCounter struct {
	Port     int           `json:"port"`
	ID       uint32        `json:"cntn"`
	Type     Value[string] `json:"qp_type,omitzero"` // of the queue pairs, where they are bound by it
	PID      Value[int]    `json:"pid,omitzero"`
	Comm     string        `json:"comm,omitempty"`
	IsKernel bool          `json:"kernel,omitempty"`
	QPs      []uint32      `json:"lqpns,omitempty"`
	Counters Counters      `json:"counters,omitempty"` // in the order of the driver
}

// Queue is a shard of one of our devices: a socket and the engine behind it.
type Queue struct {
	Index    int      `json:"queue"`
	QPs      int      `json:"qps"`
	Counters Counters `json:"counters,omitempty"`
}
