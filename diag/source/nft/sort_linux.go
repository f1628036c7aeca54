package nft

import (
	"bytes"
	"slices"

	"github.com/google/nftables"
)

// sortElements brings elements into the order of their keys, an end before a start of
// the same key.
func sortElements(e []nftables.SetElement) {
	slices.SortStableFunc(e, func(a, b nftables.SetElement) int {
		if c := bytes.Compare(a.Key, b.Key); c != 0 {
			return c
		}
		switch {
		case a.IntervalEnd == b.IntervalEnd:
			return 0
		case a.IntervalEnd:
			return -1
		}
		return 1
	})
}
