package snapshot

// App is what the kernel's dumps lack about one program that uses RDMA: its limits
// and environment, and what it printed. Where several processes have its name, such as
// the ranks of a job, it is the first of them, and Others are the rest.
type App struct {
	PID    Value[int]    `json:"pid,omitzero"`
	Comm   Value[string] `json:"comm,omitzero"`
	UID    Value[int]    `json:"uid,omitzero"`
	CapEff Value[uint64] `json:"cap_eff,omitzero"`
	// Memlock is the soft limit of locked memory in bytes; -1 for none.
	Memlock     Value[int64]      `json:"memlock,omitzero"`
	MemlockHard Value[int64]      `json:"memlock_hard,omitzero"`
	OpenFiles   Value[int64]      `json:"nofile,omitzero"`
	VmLckKB     Value[uint64]     `json:"vm_lck_kb,omitzero"`
	VmPinKB     Value[uint64]     `json:"vm_pin_kb,omitzero"`
	CPUs        Value[string]     `json:"cpus_allowed,omitzero"`
	Cgroup      Value[string]     `json:"cgroup,omitzero"`
	Env         map[string]string `json:"env,omitempty"` // NCCL_*, UCX_*, RDMAV_*, …
	// EnvUnreadable says why Env could not be read; Env is then nil.
	EnvUnreadable string       `json:"env_unreadable,omitempty"`
	ShellLimit    Value[int64] `json:"shell_memlock,omitzero"`

	// Others are the other processes of the name, in the order of their numbers, with
	// what the system knows of each (the fields above); Matching is how many have the
	// name, those included of which nothing is here. Both are empty for one process.
	Others   []App `json:"others,omitempty"`
	Matching int   `json:"matching,omitempty"`

	// What the program or its configuration asks for.
	Device       Value[string] `json:"device,omitzero"`
	Peer         Value[string] `json:"peer,omitzero"` // IP address of the far end
	GIDIndex     Value[int]    `json:"gid_index,omitzero"`
	TrafficClass Value[int]    `json:"traffic_class,omitzero"`
	PathMTU      Value[int]    `json:"path_mtu,omitzero"` // bytes
	MaxInline    Value[int]    `json:"max_inline,omitzero"`
	MaxSendWR    Value[int]    `json:"max_send_wr,omitzero"`
	// GoodputMbps is what the program itself reached.
	GoodputMbps Value[float64] `json:"goodput_mbps,omitzero"`

	// Log are the lines that it printed, as given with --log; Events what of them
	// is understood.
	Log    []string   `json:"log,omitempty"`
	Events []LogEvent `json:"events,omitempty"`
}

// LogEvent is an error that a program printed.
type LogEvent struct {
	Line int    `json:"line"` // from 1
	Text string `json:"text"`
	// Kind is what it is about: completion, modify_qp, reg_mr, create_qp, create_cq,
	// open_device, gid, cm, hang.
	Kind   string `json:"kind"`
	Status int    `json:"status,omitempty"` // work completion status, IBA 11.6.2 numbered as libibverbs does
	Vendor int    `json:"vendor,omitempty"` // vendor's syndrome; comparable inside one family only
	Errno  int    `json:"errno,omitempty"`
	State  string `json:"state,omitempty"` // the state that a modify was to reach
	Bytes  int64  `json:"bytes,omitempty"` // of a registration
	Device string `json:"device,omitempty"`
	Peer   string `json:"peer,omitempty"`
}
