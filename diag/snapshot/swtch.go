package snapshot

// Switch is what is known of a switch on the path: given as the text of its
// commands, or by the simulator.
type Switch struct {
	Name  string       `json:"name,omitempty"`
	Ports []SwitchPort `json:"ports,omitempty"`
	// Profiles are ECN profiles by name.
	Profiles []ECNProfile `json:"ecn,omitempty"`
}

// SwitchPort is a port with its PFC counters.
type SwitchPort struct {
	Name    string            `json:"port"`
	PFCRx   Value[[8]uint64]  `json:"pfc_rx,omitzero"` // frames by priority
	PFCTx   Value[[8]uint64]  `json:"pfc_tx,omitzero"` // frames
	PFC     Value[[8]bool]    `json:"pfc,omitzero"`    // enabled by priority
	Queues  []WatchdogQueue   `json:"pfcwd,omitempty"` // PFC watchdog
	MTU     Value[int]        `json:"mtu,omitzero"`    // bytes
	Trust   Value[string]     `json:"trust,omitzero"`  // dscp, pcp
	XOFF    Value[uint64]     `json:"xoff,omitzero"`   // bytes
	DSCP    map[int]int       `json:"dscp,omitempty"`  // priority by DSCP
	RateBps Value[uint64]     `json:"rate_bps,omitzero"`
	Attrs   map[string]string `json:"attrs,omitempty"`
}

// WatchdogQueue is a row of the PFC watchdog's table.
type WatchdogQueue struct {
	Queue    int    `json:"queue"`
	Status   string `json:"status"` // operational, stormed
	Detected uint64 `json:"storm_detected"`
	Restored uint64 `json:"storm_restored"`
	TxOK     uint64 `json:"tx_ok"`
	TxDrop   uint64 `json:"tx_drop"`
	RxOK     uint64 `json:"rx_ok"`
	RxDrop   uint64 `json:"rx_drop"`
}

// ECNProfile are the thresholds of random early detection with marking.
type ECNProfile struct {
	Name  string  `json:"name"`
	Kmin  uint64  `json:"kmin"` // bytes
	Kmax  uint64  `json:"kmax"` // bytes
	Pmax  float64 `json:"pmax"` // 0 to 1
	XOFF  uint64  `json:"xoff,omitempty"`
	Queue int     `json:"queue"`
}
