package scenario

import "github.com/verbena-rdma/verbena/fabric/sim"

// Default returns the scenario of an empty file: two hosts at one switch,
// 100 Gb/s, a lossless class in priority 3 with DCQCN as ConnectX ships it, and
// no traffic.
func Default() *Scenario {
	return &Scenario{
		Seed:     1,
		Until:    UntilFlows,
		Duration: 10 * sim.Second,
		Topology: defaultTopology(),
		Packet:   Packet{MTU: 1024, Header: -1},
		Switch:   defaultSwitch(),
		Host:     defaultHost(),
		Record:   defaultRecord(),
	}
}

func defaultTopology() Topology {
	return Topology{
		Kind: Star, Rate: 100 * sim.Gbps, Delay: sim.Microsecond,
		Hosts: 2, Left: 2, Right: 2, Switches: 2, HostsPerSwitch: 2,
		Leaves: 4, Spines: 8, HostsPerLeaf: 8, UplinksPerSpine: 1,
		K: 4, Oversubscription: 1, Pods: 2, LeavesPerPod: 2, AggsPerPod: 2, Cores: 2, UplinksPerAgg: 1, LinksPerCore: 1,
		NICs: 1, Units: 1, HostsPerUnit: 4, Subnets: OneSubnet, Format: "auto",
	}
}

func defaultSwitch() Switch {
	s := Switch{
		Mode: StoreAndForward, MTU: 9216, Trust: TrustDSCP,
		Buffer: Buffer{
			Total: 32e6, Cell: 1, Reserved: 4e3, Alpha: One / 8, LossyAlpha: One,
			Headroom: Headroom{Rule: HeadroomAuto}, XONOffset: 3e3,
		},
		Scheduler: Scheduler{Strict: 1 << 6},
		// 100 Gb/s values of SIGCOMM'19 HPCC's run of DCQCN.
		ECN: ECN{Priorities: 1 << 3, KMin: 400e3, KMax: 1600e3, PMax: 858993459 /* 20 % */, At: AtDequeue, DropNotECT: true},
		PFC: PFC{
			Priorities: 1 << 3, Quanta: 65535,
			Watchdog: Watchdog{Detect: 200 * sim.Millisecond, Restore: 200 * sim.Millisecond, Action: "drop"},
		},
		ECMP: ECMP{Seed: ECMPSeed{PerSwitch: true}, Fields: "5-tuple"},
	}
	for i := range s.DSCPMap {
		s.DSCPMap[i] = uint8(i / 8)
	}
	for i := range s.GroupMap {
		s.GroupMap[i], s.PCPMap[i], s.Scheduler.Weights[i] = uint8(i), uint8(i), 1
	}
	return s
}

func defaultHost() Host {
	return Host{
		RoCE:  "v2",
		NIC:   NIC{RxQueues: 1, RSS: "udp", RxBuffer: 1e6, PFC: 1 << 3, Quanta: 65535},
		RDMA:  RDMA{Service: "rc", Op: "write", Priority: 3, DSCP: 26, ECN: true, TimeoutExp: 14, RetryCnt: 7, RNRRetry: 7, AckEvery: 16, QPs: 1},
		DCQCN: DCQCN{Preset: "mlx5"},
		CNP:   CNP{Priority: 6, DSCP: 48},
		TCP:   TCP{Kind: "dctcp", MSS: 1460, InitWindow: 10, MinRTO: 10 * sim.Millisecond, G: One / 16},
	}
}

func defaultRecord() Record {
	return Record{
		Series: Select{"all"}, PCAPPackets: 1_000_000,
		MaxPauses: 1_000_000, MaxDrops: 100_000, MaxSamples: 100_000,
	}
}
