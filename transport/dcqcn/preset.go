package dcqcn

import (
	"fmt"
	"strings"
	"time"
)

// Presets returns the names that [Preset] knows.
func Presets() []string { return []string{"paper", "mlx5", "hpcc"} }

// Preset returns a named set of parameters. An unknown name is an error that
// lists the known ones.
func Preset(name string) (Params, error) {
	switch name {
	case "paper":
		return paper(), nil
	case "mlx5":
		return mlx5(), nil
	case "hpcc":
		return hpcc(), nil
	default:
		return Params{}, fmt.Errorf("dcqcn preset %q: not one of %s", name, strings.Join(Presets(), ", "))
	}
}

// paper is SIGCOMM'15 DCQCN with the parameters of its table and of the fluid
// model (CoNEXT'16). The paper gives no R_HAI and no minimum rate: those two
// are ns3-rdma's, its authors' simulator.
func paper() Params {
	return Params{
		Name:               "paper",
		Notify:             NotifyCNP,
		MinTimeBetweenCNPs: 50 * time.Microsecond,
		NPWindow:           true,
		CNPDSCP:            48,
		CNPPrio:            6,

		DCETCPG:           Fraction{1, 256},
		DCETCPRTT:         55 * time.Microsecond,
		InitialAlphaValue: 1024,
		AlphaBits:         32,
		AlphaUpdate:       AlphaOnCNP,

		RPGGd:        11,
		RPGMinDecFac: 50,
		RPGMinRate:   100 * mega,
		ClampTgtRate: true,

		RPGTimeReset: 55 * time.Microsecond,
		RPGByteReset: 10 * mega,
		RPGThreshold: 5,
		// Theorem 1 counts F events before the first additive one.
		StageBeforeEvent: true,
		RPGAIRate:        40 * mega,
		RPGHAIRate:       200 * mega,
		HyperScaled:      true,
	}
}

// mlx5 is a ConnectX with the values it is shipped with.
func mlx5() Params {
	return Params{
		Name:               "mlx5",
		Notify:             NotifyCNP,
		MinTimeBetweenCNPs: 4 * time.Microsecond,
		CNPDSCP:            48,
		CNPPrio:            6,

		DCETCPG:           Fraction{5, 1024},
		DCETCPRTT:         1 * time.Microsecond,
		InitialAlphaValue: 1023,
		AlphaBits:         10,
		AlphaUpdate:       AlphaPeriodic,
		AlphaBeforeCut:    true,

		RateReduceMonitorPeriod:  4 * time.Microsecond,
		RPGGd:                    11,
		RPGMinDecFac:             50,
		RPGMinRate:               1 * mega,
		ClampTgtRateAfterTimeInc: true,

		RPGTimeReset:     300 * time.Microsecond,
		RPGByteReset:     32767 * 64,
		RPGThreshold:     1,
		StageBeforeEvent: true,
		RPGAIRate:        5 * mega,
		RPGHAIRate:       50 * mega,
	}
}

// hpcc is what HPCC's simulator runs as "dcqcn": a ConnectX without byte
// counter, told by flags in acknowledgements, rates as shares of the line.
func hpcc() Params {
	return Params{
		Name:    "hpcc",
		Notify:  NotifyAck,
		CNPDSCP: 48,
		CNPPrio: 6,

		DCETCPG:           Fraction{1, 256},
		DCETCPRTT:         1 * time.Microsecond,
		InitialAlphaValue: 1024,
		AlphaBits:         32,
		AlphaUpdate:       AlphaPeriodic,
		AlphaBeforeCut:    true,

		RateReduceMonitorPeriod:  4 * time.Microsecond,
		RPGGd:                    11,
		RPGMinDecFac:             50,
		MinRateDiv:               100, // 1000 Mb/s at 100 Gb/s
		ClampTgtRateAfterTimeInc: true,

		RPGTimeReset:     300 * time.Microsecond,
		RPGThreshold:     1,
		StageBeforeEvent: true,
		AIRateDiv:        5000, // 5 Mb/s for each 25 Gb/s
		HAIRateDiv:       500,  // 50 Mb/s for each 25 Gb/s
		HyperByTimer:     true,
	}
}
