package main

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// holderProgram is the name under which the test's program holds devices instead of
// testing: holder DEVICES SHARDS QPS, the last two of each device. It prints a line when
// it is ready and ends with its standard input.
const holderProgram = "verbena-holder"

func holdDevices() {
	if err := hold(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func hold(args []string) error {
	var n [3]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(args[i]); err != nil {
			return err
		}
	}
	for i := range n[0] {
		dev, err := verbs.Open(verbs.Config{
			Addr: netip.AddrFrom4([4]byte{127, 0, 1, byte(100 + i)}), Port: 14818, Shards: n[1], Control: verbs.ControlOn,
		})
		if err != nil {
			return err
		}
		defer dev.Close()
		pd := dev.AllocPD()
		cq, err := dev.CreateCQ(verbs.CQConfig{})
		if err != nil {
			return err
		}
		for range n[2] {
			_, err := pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: cq, RecvCQ: cq, Cap: ib.QPCap{MaxSendWR: 1, MaxRecvWR: 1}})
			if err != nil {
				return err
			}
		}
	}
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
