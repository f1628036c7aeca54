// Package mem owns registered memory: regions, their keys, access checks, and
// the movement of bytes between scatter/gather lists and packets.
package mem
