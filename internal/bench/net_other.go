//go:build !linux

package bench

import (
	"os"
	"os/exec"
	"runtime"
	"time"
)

func dieWithParent(*exec.Cmd)           {}
func ownNetwork(*exec.Cmd)              {}
func mayMakeNetworks() string           { return "no network namespaces here" }
func sharedPage() (*os.File, error)     { return nil, nil }
func processCPU() time.Duration         { return 0 }
func yieldThread()                      { runtime.Gosched() }
func newGSO(*child, *Spec) (end, error) { return nil, errLinux }
func newSpinUDP(*child) (end, error)    { return nil, errLinux }
func pin(int, int) error                { return nil }
