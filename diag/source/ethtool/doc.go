// Package ethtool asks a driver for what the ethtool program shows: statistics,
// features, rings, channels, link pause, FEC, and what receive-side scaling hashes.
//
// Most of it is github.com/safchain/ethtool; what that does not have (statistics in the
// order of the driver, ETHTOOL_GRXFH, ETHTOOL_GFECPARAM) are ioctls here. It has no
// request that sets anything. On other systems than Linux Open fails. Called by
// diag/source.
package ethtool
