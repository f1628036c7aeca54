//go:build !linux

package nft

import (
	"errors"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Read fails.
func Read() ([]snapshot.NFTChain, error) { return nil, errors.New("nftables need Linux") }
