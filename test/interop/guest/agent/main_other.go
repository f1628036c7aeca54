//go:build !linux

// Command agent is the first process of a Linux guest and does nothing on other systems.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "agent: runs only as the first process of a Linux guest")
	os.Exit(2)
}
