//go:build !linux

package uverbs

import (
	"errors"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Query is for Linux only.
func Query(string) (device snapshot.Attr, ports map[int]snapshot.Attr, err error) {
	return nil, nil, errors.New("only Linux has devices of verbs")
}
