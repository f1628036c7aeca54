//go:build !linux

package ethtool

import (
	"errors"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Client does not exist on this system.
type Client struct{}

var errOther = errors.New("ethtool needs Linux")

// Open fails.
func Open() (*Client, error) { return nil, errOther }

// Close does nothing.
func (*Client) Close() error { return nil }

// Stats fails.
func (*Client) Stats(string) (snapshot.Counters, error) { return nil, errOther }

// Driver fails.
func (*Client) Driver(string) (string, error) { return "", errOther }

// Features fails.
func (*Client) Features(string) (map[string]bool, error) { return nil, errOther }

// Rings fails.
func (*Client) Rings(string) (map[string]uint64, error) { return nil, errOther }

// Channels fails.
func (*Client) Channels(string) (map[string]uint64, error) { return nil, errOther }

// Pause fails.
func (*Client) Pause(string) (snapshot.Pause, error) { return snapshot.Pause{}, errOther }

// FEC fails.
func (*Client) FEC(string) (string, error) { return "", errOther }

// Hash fails.
func (*Client) Hash(string, string) (snapshot.Hash, error) { return 0, errOther }
