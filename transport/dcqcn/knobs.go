package dcqcn

import "time"

const (
	mega = 1_000_000
	giga = 1_000_000_000

	maxRate   = 1_000_000 * giga
	maxPeriod = int64(131071 * time.Microsecond) // 17 bits in mlxconfig
)

// Knobs returns every parameter, in the order of the documentation: the
// notification point, alpha, the cut, the increase. The slice is the caller's.
func Knobs() []Knob {
	var all []Knob
	all = append(all, npKnobs()...)
	all = append(all, alphaKnobs()...)
	all = append(all, cutKnobs()...)
	return append(all, increaseKnobs()...)
}

func npKnobs() []Knob {
	return []Knob{
		choiceKnob("notify", "", "what tells the sender: a CNP packet, or BECN in acknowledgements (HPCC's simulator)",
			[]string{"cnp", "ack"}, func(p *Params) *Notify { return &p.Notify }),
		timeKnob("min_time_between_cnps", "N", "least time between two CNPs of a QP; 0: one for each marked packet",
			0, maxPeriod, func(p *Params) *time.Duration { return &p.MinTimeBetweenCNPs }),
		flagKnob("np_window", "marks within min_time_between_cnps of a CNP are answered when it is over, not forgotten",
			func(p *Params) *bool { return &p.NPWindow }),
		numberKnob("cnp_dscp", "", "DSCP of CNPs", "", 0, 63, func(p *Params) *uint8 { return &p.CNPDSCP }),
		numberKnob("cnp_802p_prio", "", "priority of CNPs", "", 0, 7, func(p *Params) *uint8 { return &p.CNPPrio }),
	}
}

func alphaKnobs() []Knob {
	return []Knob{
		{
			Name: "dce_tcp_g", Paper: "g", Unit: "(1-g)·1024", scale: 1, form: weight,
			Doc: "weight of the newest observation in alpha",
			get: func(p *Params) int64 {
				return 1024 - (1024*int64(p.DCETCPG.Num)+int64(p.DCETCPG.Den)/2)/max(int64(p.DCETCPG.Den), 1)
			},
		},
		timeKnob("dce_tcp_rtt", "K", "period of alpha's timer (tau' of the fluid model)",
			100, maxPeriod, func(p *Params) *time.Duration { return &p.DCETCPRTT }),
		numberKnob("initial_alpha_value", "", "alpha at the first CNP", "1/1024", 0, 1024,
			func(p *Params) *uint32 { return &p.InitialAlphaValue }),
		numberKnob("alpha_bits", "", "bits of alpha's fraction; lowering rounds down, raising up", "", 10, 32,
			func(p *Params) *uint8 { return &p.AlphaBits }),
		choiceKnob("alpha_update", "", "what drives alpha: each CNP and a timer restarted by it, or a free-running timer",
			[]string{"cnp", "period"}, func(p *Params) *AlphaUpdate { return &p.AlphaUpdate }),
		flagKnob("alpha_before_cut", "alpha is updated before a cut at the same instant",
			func(p *Params) *bool { return &p.AlphaBeforeCut }),
	}
}

func cutKnobs() []Knob {
	return []Knob{
		timeKnob("rate_reduce_monitor_period", "", "CNPs of a period give one cut at its end; 0: each CNP cuts at once",
			0, int64((1<<32-1)*time.Microsecond), func(p *Params) *time.Duration { return &p.RateReduceMonitorPeriod }),
		numberKnob("rpg_gd", "", "a cut takes alpha·1024/2^rpg_gd of R_C: 11 is alpha/2", "", 0, 15,
			func(p *Params) *uint8 { return &p.RPGGd }),
		numberKnob("rpg_min_dec_fac", "", "a cut leaves at least this share of R_C", "%", 0, 100,
			func(p *Params) *uint8 { return &p.RPGMinDecFac }),
		shareKnob("rpg_min_rate", "", "no cut goes below", false,
			func(p *Params) (*uint64, *uint32) { return &p.RPGMinRate, &p.MinRateDiv }),
		rateKnob("rpg_max_rate", "", "R_C that releases the limiter; 0: the line rate",
			func(p *Params) *uint64 { return &p.RPGMaxRate }),
		rateKnob("rate_to_set_on_first_cnp", "", "R_C and R_T at the first CNP; 0: left alone",
			func(p *Params) *uint64 { return &p.RateToSetOnFirstCNP }),
		flagKnob("clamp_tgt_rate", "each cut sets R_T to the R_C before it; false: if the byte counter has expired since the last cut",
			func(p *Params) *bool { return &p.ClampTgtRate }),
		flagKnob("clamp_tgt_rate_after_time_inc", "with clamp_tgt_rate false: also if the timer has expired since the last cut",
			func(p *Params) *bool { return &p.ClampTgtRateAfterTimeInc }),
	}
}

func increaseKnobs() []Knob {
	bytes := Knob{
		Name: "rpg_byte_reset", Paper: "B", Unit: "64 B", Doc: "byte counter; 0: none",
		form: size, scale: 64, least: 64, most: 1 << 40, off: true,
		get: func(p *Params) int64 { return int64(p.RPGByteReset) },
		set: func(p *Params, v int64) { p.RPGByteReset = uint64(v) },
	}
	timer := timeKnob("rpg_time_reset", "T", "increase timer; 0: none",
		100, maxPeriod, func(p *Params) *time.Duration { return &p.RPGTimeReset })
	timer.off = true
	return []Knob{
		timer, bytes,
		numberKnob("rpg_threshold", "F", "stage at which fast recovery ends", "", 0, 31,
			func(p *Params) *uint32 { return &p.RPGThreshold }),
		flagKnob("stage_before_event", "stages are compared with F before the event counts, not after",
			func(p *Params) *bool { return &p.StageBeforeEvent }),
		shareKnob("rpg_ai_rate", "R_AI", "step of R_T in additive increase", true,
			func(p *Params) (*uint64, *uint32) { return &p.RPGAIRate, &p.AIRateDiv }),
		shareKnob("rpg_hai_rate", "R_HAI", "step of R_T in hyper increase", true,
			func(p *Params) (*uint64, *uint32) { return &p.RPGHAIRate, &p.HAIRateDiv }),
		flagKnob("hyper_at_threshold", "hyper increase begins when both stages are F, not above F",
			func(p *Params) *bool { return &p.HyperAtThreshold }),
		flagKnob("hyper_by_timer", "hyper increase looks at the time stage alone",
			func(p *Params) *bool { return &p.HyperByTimer }),
		flagKnob("hyper_scaled", "the i-th stage of hyper increase adds i·R_HAI, not R_HAI",
			func(p *Params) *bool { return &p.HyperScaled }),
		flagKnob("hyper_halves", "counters run for half their interval in hyper increase",
			func(p *Params) *bool { return &p.HyperHalves }),
		flagKnob("extra_fast_recovery", "while a stage is 1 and R_T > 10·R_C an event divides R_T by 8 instead of raising it",
			func(p *Params) *bool { return &p.ExtraFastRecovery }),
	}
}

func numberKnob[T ~uint8 | ~uint32](name, paper, doc, unit string, least, most int64, at func(*Params) *T) Knob {
	return Knob{
		Name: name, Paper: paper, Unit: unit, Doc: doc, form: number, scale: 1, least: least, most: most,
		get: func(p *Params) int64 { return int64(*at(p)) },
		set: func(p *Params, v int64) { *at(p) = T(v) },
	}
}

func choiceKnob[T ~uint8](name, paper, doc string, values []string, at func(*Params) *T) Knob {
	k := numberKnob(name, paper, doc, "", 0, int64(len(values))-1, at)
	k.form, k.Values = choice, values
	return k
}

func flagKnob(name, doc string, at func(*Params) *bool) Knob {
	return Knob{
		Name: name, Doc: doc, form: toggle, scale: 1, most: 1,
		get: func(p *Params) int64 {
			if *at(p) {
				return 1
			}
			return 0
		},
		set: func(p *Params, v int64) { *at(p) = v != 0 },
	}
}

func timeKnob(name, paper, doc string, least, most int64, at func(*Params) *time.Duration) Knob {
	return Knob{
		Name: name, Paper: paper, Unit: "us", Doc: doc, form: duration, scale: int64(time.Microsecond),
		least: least, most: most,
		get: func(p *Params) int64 { return int64(*at(p)) },
		set: func(p *Params, v int64) { *at(p) = time.Duration(v) },
	}
}

func rateKnob(name, paper, doc string, at func(*Params) *uint64) Knob {
	return Knob{
		Name: name, Paper: paper, Unit: "Mb/s", Doc: doc, form: rate, scale: mega,
		least: 1000, most: maxRate, off: true,
		get: func(p *Params) int64 { return int64(min(*at(p), 1<<62)) },
		set: func(p *Params, v int64) { *at(p) = uint64(v) },
	}
}

// shareKnob is a rate that may follow the line rate.
func shareKnob(name, paper, doc string, off bool, at func(*Params) (*uint64, *uint32)) Knob {
	k := rateKnob(name, paper, doc, func(p *Params) *uint64 { r, _ := at(p); return r })
	k.off = off
	k.div = func(p *Params) *uint32 { _, d := at(p); return d }
	return k
}
