package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
)

// programVersion names the program so exactly that two that may compute
// something different have different names: the version of a release, else also
// the digest of the executable.
func programVersion() string {
	v := buildVersion()
	if v != "devel" {
		return v
	}
	name, err := os.Executable()
	if err != nil {
		return v
	}
	f, err := os.Open(name)
	if err != nil {
		return v
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return v
	}
	return v + " " + hex.EncodeToString(h.Sum(nil)[:8])
}
