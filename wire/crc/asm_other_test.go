//go:build !amd64 || purego

package crc

func asmUpdaters() map[string]func(uint32, []byte) uint32 { return nil }

func asmCopiers() map[string]func(dst, src []byte, crc uint32) uint32 { return nil }
