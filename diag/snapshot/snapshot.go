package snapshot

import (
	"strconv"
	"time"
)

// Version is the version of the model in JSON; it rises when a field changes its
// meaning.
const Version = 1

// Origin says where a snapshot comes from.
type Origin string

// Origins.
const (
	Live      Origin = "live"      // this host, now
	Recorded  Origin = "recorded"  // a directory
	Simulated Origin = "simulated" // a host of the simulator
)

// Snapshot is a host at one instant.
type Snapshot struct {
	Version int           `json:"version"`
	Origin  Origin        `json:"origin"`
	Host    Value[string] `json:"host,omitzero"`
	Kernel  Value[string] `json:"kernel,omitzero"`
	Taken   time.Time     `json:"taken,omitzero"`
	// Uptime is the time since the host was started, in seconds.
	Uptime Value[float64] `json:"uptime_s,omitzero"`

	// Devices are in the order of their index, those without one after them by
	// name, numbers in names compared as numbers.
	Devices []Device  `json:"devices"`
	Netdevs []Netdev  `json:"netdevs,omitempty"`
	RDMA    Subsystem `json:"rdma,omitzero"`

	Routes     Value[[]Route]           `json:"routes,omitzero"`
	Rules      Value[[]PolicyRule]      `json:"rules,omitzero"`
	Neighbours Value[[]Neighbour]       `json:"neighbours,omitzero"`
	Sysctl     map[string]Value[string] `json:"sysctl,omitempty"` // by dotted name, net.ipv4.conf.eth0.rp_filter
	HugePages  []HugePages              `json:"huge_pages,omitempty"`
	Firewall   Firewall                 `json:"firewall,omitzero"`
	SNMP       map[string]Value[uint64] `json:"snmp,omitempty"` // Udp.RcvbufErrors, Ip.FragCreates, Udp6.…
	Softnet    []Softnet                `json:"softnet,omitempty"`
	Modules    Value[[]string]          `json:"modules,omitzero"`
	Cmdline    Value[string]            `json:"cmdline,omitzero"` // of the kernel
	IOMMU      Value[int]               `json:"iommu_groups,omitzero"`
	NICs       []PCINIC                 `json:"nics,omitempty"` // PCI functions that could be RDMA devices
	Chardevs   Value[[]Chardev]         `json:"chardevs,omitzero"`

	App    *App    `json:"app,omitempty"`
	Switch *Switch `json:"switch,omitempty"`

	// Problems are the places that could not be read, in the order met; each has
	// cost one value.
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is a place that could not be read, or held nonsense.
type Problem struct {
	Place string `json:"place"` // a path or a query
	Why   string `json:"why"`
}

// Subsystem is the RDMA subsystem of the kernel.
type Subsystem struct {
	NetnsMode      Value[string] `json:"netns,omitzero"` // shared, exclusive
	PrivilegedQKey Value[bool]   `json:"privileged_qkey,omitzero"`
	Monitor        Value[bool]   `json:"monitor,omitzero"`
	CopyOnFork     Value[bool]   `json:"copy_on_fork,omitzero"`
}

// Device returns the device of a name, nil if there is none.
func (s *Snapshot) Device(name string) *Device {
	for i := range s.Devices {
		if s.Devices[i].Name == name {
			return &s.Devices[i]
		}
	}
	return nil
}

// Same returns the device that d, of another snapshot of the host, is here; nil if it is
// not there. The kernel's devices are known by their names. Those of processes change
// names when others close; they are known by the process and their GUID.
func (s *Snapshot) Same(d *Device) *Device {
	named := s.Device(d.Name)
	if d.PID == 0 || named != nil && named.isOf(d) {
		if named != nil && named.PID != d.PID {
			return nil
		}
		return named
	}
	for i := range s.Devices {
		if s.Devices[i].isOf(d) {
			return &s.Devices[i]
		}
	}
	return nil
}

// isOf reports whether two devices of processes are one.
func (d *Device) isOf(o *Device) bool {
	return d.PID == o.PID && d.NodeGUID.Or("") == o.NodeGUID.Or("")
}

// Labels returns a name for each device that no other one has: its name, and where
// several processes hold devices of one name, the process with it, or else a number.
func (s *Snapshot) Labels() []string {
	count, seen := map[string]int{}, map[string]int{}
	for i := range s.Devices {
		count[s.Devices[i].Name]++
	}
	out := make([]string, len(s.Devices))
	for i := range s.Devices {
		d := &s.Devices[i]
		out[i] = d.Name
		if count[d.Name] > 1 && d.PID != 0 {
			out[i] += "@" + strconv.Itoa(d.PID)
		}
		if seen[out[i]]++; seen[out[i]] > 1 {
			out[i] += "#" + strconv.Itoa(seen[out[i]])
		}
	}
	return out
}

// Netdev returns the network interface of a name, nil if there is none.
func (s *Snapshot) Netdev(name string) *Netdev {
	for i := range s.Netdevs {
		if s.Netdevs[i].Name == name {
			return &s.Netdevs[i]
		}
	}
	return nil
}
