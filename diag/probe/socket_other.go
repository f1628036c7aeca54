//go:build !linux

package probe

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// errPlatform: what arrives must be seen with TOS and TTL, and fragmentation
// forbidden; only Linux is known to give both as needed here.
var errPlatform = fmt.Errorf("verbena probe needs Linux: %w", errors.ErrUnsupported)

func openSocket(netip.AddrPort) (socket, error) { return nil, errPlatform }

type packetSocket struct{}

func openCapture(bool, uint16) (*packetSocket, error)  { return nil, errPlatform }
func (*packetSocket) Close() error                     { return nil }
func (*packetSocket) waiting() bool                    { return false }
func (*packetSocket) serve(func(*arrival, []byte))     {}
func refused(error) bool                               { return false }
func inUse(error) bool                                 { return false }
func pending(error) bool                               { return false }
func errname(err error) string                         { return text(err) }
func dialControl(_, _ string, _ syscall.RawConn) error { return nil }
