package doctor_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/listing"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/source"
)

// A recorded host, listed and judged: what verbena rdma link and verbena doctor do with
// --host. A directory of verbena snapshot is opened in the same way; this host is
// source.NewLive and read.Host, looked at twice.
func ExampleExamine() {
	rec, err := source.Open("testdata/constructed/f04-gid-index-0.txtar")
	check(err)
	defer rec.Close()
	window, err := read.Window(rec, read.Options{}) // the last two instants, or the only one
	check(err)

	links, err := listing.RDMA(window.After, []string{"link", "show"})
	check(err)
	fmt.Printf("%s\n", bytes.TrimSpace(links))

	rules, err := doctor.Builtin() // and doctor.Parse, doctor.Merge for your own
	check(err)
	report := doctor.Examine(doctor.Input{Host: window, Prio: -1}, rules) // -1: which priority is lossless is inferred
	for _, f := range report.Findings {
		if f.Status == doctor.Fail {
			fmt.Printf("%s %s: %s\n", f.Status, f.Rule, f.Title) // and Evidence, Cause, Fix, Confidence …
		}
	}
	fmt.Println("exit status:", report.Exit())
	// Output:
	// link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1f0np0
	// FAIL L14: the GID index in use is not the one of RoCE v2 with a routable address
	// exit status: 2
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
