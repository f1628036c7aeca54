package demo

import (
	"context"
	"fmt"

	"github.com/verbena-rdma/verbena/internal/play"
)

// fabricScenario is the case that every RoCE course tells.
const fabricScenario = "cross-subnet-ecn"

// fabric puts the RNICs of this program into a simulated network, in the case
// that a threshold of ECN is below the bursts, and in the one where it is above.
func fabric(ctx context.Context, cfg *Config) error {
	bar := play.NewBar(cfg.Status)
	if bar == nil {
		fmt.Fprintln(cfg.Status, "simulating a fabric …")
	}
	fmt.Fprint(cfg.Out, "\nThe same RNICs in a simulated fabric with PFC, ECN and DCQCN, packet by packet in virtual time\n\n")
	if err := play.Brief(ctx, cfg.Out, fabricScenario, bar); err != nil {
		return err
	}
	_, err := fmt.Fprintf(cfg.Out, `  Go on:  verbena sim run %[1]s                 the whole explanation; with -o DIR charts and files
          verbena sim sweep %[1]s --set ecn.kmin=8KB,32KB,128KB,512KB
          verbena sim list                                  the library of scenarios; docs/sim.md is the tour
`, fabricScenario)
	return err
}
