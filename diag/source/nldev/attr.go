package nldev

// Commands of RDMA_NL_NLDEV, the fifth client of NETLINK_RDMA.
const (
	family    = 20
	client    = 5
	cmdDev    = 1
	cmdPort   = 5
	cmdSystem = 6
	cmdRes    = 9
	cmdQP     = 10
	cmdCMID   = 11
	cmdCQ     = 12
	cmdMR     = 13
	cmdPD     = 14
	cmdStat   = 17
	cmdCTX    = 22
	cmdSRQ    = 23
)

// Attributes.
const (
	attrDevIndex       = 1
	attrDevName        = 2
	attrPortIndex      = 3
	attrCapFlags       = 4
	attrFirmware       = 5
	attrNodeGUID       = 6
	attrSysImageGUID   = 7
	attrSubnetPrefix   = 8
	attrLID            = 9
	attrSMLID          = 10
	attrLMC            = 11
	attrPortState      = 12
	attrPhysState      = 13
	attrNodeType       = 14
	attrSummary        = 15
	attrSummaryEntry   = 16
	attrSummaryName    = 17
	attrSummaryCurrent = 18
	attrQP             = 19
	attrQPEntry        = 20
	attrLQPN           = 21
	attrRQPN           = 22
	attrRQPSN          = 23
	attrSQPSN          = 24
	attrPathMig        = 25
	attrType           = 26
	attrState          = 27
	attrPID            = 28
	attrKernName       = 29
	attrCMID           = 30
	attrCMIDEntry      = 31
	attrPS             = 32
	attrSource         = 33
	attrDest           = 34
	attrCQ             = 35
	attrCQEntry        = 36
	attrCQE            = 37
	attrUsers          = 38
	attrPollCtx        = 39
	attrMR             = 40
	attrMREntry        = 41
	attrRKey           = 42
	attrLKey           = 43
	attrIOVA           = 44
	attrMRLength       = 45
	attrPD             = 46
	attrPDEntry        = 47
	attrLocalDMALKey   = 48
	attrNetIndex       = 50
	attrNetName        = 51
	attrPDN            = 60
	attrCQN            = 61
	attrMRN            = 62
	attrCMIDN          = 63
	attrCTXN           = 64
	attrNetnsMode      = 66
	attrProtocol       = 67
	attrHWCounters     = 80
	attrHWCounter      = 81
	attrHWCounterName  = 82
	attrHWCounterValue = 83
	attrDIM            = 84
	attrCTX            = 86
	attrCTXEntry       = 87
	attrSRQ            = 88
	attrSRQEntry       = 89
	attrSRQN           = 90
	attrMinRange       = 91
	attrMaxRange       = 92
	attrCopyOnFork     = 93
	attrPrivilegedQKey = 96
	attrSubtype        = 98
	attrMonitor        = 103
)
