//go:build !linux

package control

import (
	"errors"
	"net"
)

const (
	supported = false
	table     = ""
)

type credentials struct{ uid, pid int }

func peerOf(*net.UnixConn) (credentials, error) { return credentials{}, errors.ErrUnsupported }
