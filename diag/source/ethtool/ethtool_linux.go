package ethtool

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	safchain "github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Commands of SIOCETHTOOL.
const (
	cmdStrings = 0x1b // ETHTOOL_GSTRINGS
	cmdStats   = 0x1d // ETHTOOL_GSTATS
	cmdRXFH    = 0x29 // ETHTOOL_GRXFH
	cmdSetInfo = 0x37 // ETHTOOL_GSSET_INFO
	cmdFEC     = 0x50 // ETHTOOL_GFECPARAM

	setStats  = 1 // ETH_SS_STATS
	stringLen = 32
	maxStats  = 1 << 14
)

// Client is a socket. It serves one goroutine at a time.
type Client struct {
	fd int
	e  *safchain.Ethtool
}

// Open opens a client in the network namespace of the calling thread.
func Open() (*Client, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	e, err := safchain.NewEthtool()
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &Client{fd, e}, nil
}

// Close closes the socket.
func (c *Client) Close() error {
	c.e.Close()
	return unix.Close(c.fd)
}

// ioctl runs a command that reads and writes buf, which begins with the command.
func (c *Client) ioctl(ifname string, buf []byte) error {
	if len(ifname) >= unix.IFNAMSIZ {
		return unix.ENODEV
	}
	// struct ifreq: 16 bytes of name, then a pointer.
	var req struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(req.name[:], ifname)
	var pin runtime.Pinner
	pin.Pin(&buf[0])
	defer pin.Unpin()
	req.data = unsafe.Pointer(&buf[0])
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(c.fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req)))
	if errno != 0 {
		return errno
	}
	return nil
}

// Stats returns the statistics in the order of the driver.
func (c *Client) Stats(ifname string) (snapshot.Counters, error) {
	n, err := c.count(ifname)
	if err != nil {
		return nil, err
	}
	if n > maxStats {
		return nil, fmt.Errorf("%d statistics, more than %d", n, maxStats)
	}
	if n == 0 {
		return nil, unix.EOPNOTSUPP
	}
	names := make([]byte, 12+n*stringLen)
	ne := binary.NativeEndian
	ne.PutUint32(names, cmdStrings)
	ne.PutUint32(names[4:], setStats)
	ne.PutUint32(names[8:], uint32(n))
	if err := c.ioctl(ifname, names); err != nil {
		return nil, err
	}
	values := make([]byte, 8+n*8)
	ne.PutUint32(values, cmdStats)
	ne.PutUint32(values[4:], uint32(n))
	if err := c.ioctl(ifname, values); err != nil {
		return nil, err
	}
	n = min(n, int(ne.Uint32(values[4:])), int(ne.Uint32(names[8:])))
	all := make(snapshot.Counters, 0, n)
	for i := range n {
		s := names[12+i*stringLen:][:stringLen]
		if end := bytes.IndexByte(s, 0); end >= 0 {
			s = s[:end]
		}
		all = append(all, snapshot.Counter{Name: strings.TrimSpace(string(s)), Value: snapshot.Known(ne.Uint64(values[8+i*8:]))})
	}
	return all, nil
}

func (c *Client) count(ifname string) (int, error) {
	b := make([]byte, 16+4)
	binary.NativeEndian.PutUint32(b, cmdSetInfo)
	binary.NativeEndian.PutUint64(b[8:], 1<<setStats)
	if err := c.ioctl(ifname, b); err != nil {
		return 0, err
	}
	if binary.NativeEndian.Uint64(b[8:]) == 0 {
		return 0, unix.EOPNOTSUPP
	}
	return int(binary.NativeEndian.Uint32(b[16:])), nil
}

// Driver returns the name of the driver.
func (c *Client) Driver(ifname string) (string, error) { return c.e.DriverName(ifname) }

// Features returns which offloads are on.
func (c *Client) Features(ifname string) (map[string]bool, error) {
	f, err := c.e.Features(ifname)
	delete(f, "")
	return f, err
}

// Rings returns the sizes of the rings and their limits.
func (c *Client) Rings(ifname string) (map[string]uint64, error) {
	r, err := c.e.GetRing(ifname)
	if err != nil {
		return nil, err
	}
	return map[string]uint64{
		"rx": uint64(r.RxPending), "rx_max": uint64(r.RxMaxPending), "tx": uint64(r.TxPending), "tx_max": uint64(r.TxMaxPending),
	}, nil
}

// Channels returns the numbers of queues and their limits.
func (c *Client) Channels(ifname string) (map[string]uint64, error) {
	n, err := c.e.GetChannels(ifname)
	if err != nil {
		return nil, err
	}
	return map[string]uint64{
		"rx": uint64(n.RxCount), "rx_max": uint64(n.MaxRx), "tx": uint64(n.TxCount), "tx_max": uint64(n.MaxTx),
		"combined": uint64(n.CombinedCount), "combined_max": uint64(n.MaxCombined),
	}, nil
}

// Pause returns the flow control of the whole link.
func (c *Client) Pause(ifname string) (snapshot.Pause, error) {
	p, err := c.e.GetPause(ifname)
	return snapshot.Pause{Autoneg: p.Autoneg != 0, RX: p.RxPause != 0, TX: p.TxPause != 0}, err
}

// FEC returns the active forward error correction: off, rs, baser, llrs, joined by
// commas; auto or none where the driver says that.
func (c *Client) FEC(ifname string) (string, error) {
	b := make([]byte, 16)
	binary.NativeEndian.PutUint32(b, cmdFEC)
	if err := c.ioctl(ifname, b); err != nil {
		return "", err
	}
	active := binary.NativeEndian.Uint32(b[4:])
	var all []string
	for i, name := range []string{"none", "auto", "off", "rs", "baser", "llrs"} {
		if active>>i&1 != 0 {
			all = append(all, name)
		}
	}
	return strings.Join(all, ","), nil
}

// Hash returns what receive-side scaling hashes of a flow type, udp4 or udp6.
func (c *Client) Hash(ifname, flow string) (snapshot.Hash, error) {
	types := map[string]uint32{"tcp4": 1, "udp4": 2, "tcp6": 5, "udp6": 6}
	t, ok := types[flow]
	if !ok {
		return 0, unix.EINVAL
	}
	// struct ethtool_rxnfc: command, flow type, data, and rules that are not looked at.
	b := make([]byte, 256)
	binary.NativeEndian.PutUint32(b, cmdRXFH)
	binary.NativeEndian.PutUint32(b[4:], t)
	if err := c.ioctl(ifname, b); err != nil {
		return 0, err
	}
	return snapshot.Hash(binary.NativeEndian.Uint64(b[8:])), nil
}
