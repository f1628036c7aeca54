//go:build !linux || !(amd64 || arm64 || riscv64 || loong64 || ppc64le || s390x)

package iptables

import "io/fs"

// Read has nothing to read here.
func Read([]byte) (string, error) { return "", fs.ErrNotExist }

// ReadIPv6 has nothing to read here.
func ReadIPv6([]byte) (string, error) { return "", fs.ErrNotExist }
