//go:build amd64 && !purego

package crc

func update(crc uint32, p []byte) uint32            { return updatePortable(crc, p) }
func copyUpdate(dst, src []byte, crc uint32) uint32 { return copyPortable(dst, src, crc) }
func short(crc uint32, p []byte) uint32             { return sliced(crc, p) }
