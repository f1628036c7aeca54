//go:build !linux

package nlask

import "errors"

// Dial fails: only Linux has netlink.
func Dial(int) (*Conn, error) { return nil, errors.New("only Linux has netlink") }
