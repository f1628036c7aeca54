package verbs

import (
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/packet"
)

// checkEthernet refuses what contradicts itself about an Ethernet device.
func (cfg *Config) checkEthernet() error {
	switch {
	case !cfg.Ethernet && (cfg.VLAN != 0 || cfg.PriorityTag):
		return errorf(ErrInvalid, "VLAN is %d and PriorityTag %v, but only an Ethernet device has tags; set Ethernet", cfg.VLAN, cfg.PriorityTag)
	case cfg.Ethernet && cfg.Link != nil:
		return errorf(ErrInvalid, "both Ethernet and Link are set; one is enough")
	case cfg.Ethernet && cfg.Port != 0 && cfg.Port != DefaultPort:
		return errorf(ErrInvalid, "Port is %d, can only be %d on an Ethernet device", cfg.Port, DefaultPort)
	}
	return nil
}

// openEthernet opens the raw socket of an Ethernet device.
func openEthernet(cfg *Config, at place) (link.Link, error) {
	if at.netdev == "" {
		return nil, errorf(ErrNoDevice, "no interface of this host has the address %v", cfg.Addr)
	}
	c := packet.Config{Interface: at.netdev, VLAN: cfg.VLAN, Tag: cfg.PriorityTag, RecvBuffer: cfg.RecvBuffer}
	for _, a := range at.addrs {
		if a.unusable == "" {
			c.Addrs = append(c.Addrs, a.addr)
		}
	}
	return packet.Open(c)
}
