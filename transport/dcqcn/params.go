package dcqcn

import "time"

// Notify is how the notification point tells the sender of congestion.
type Notify uint8

const (
	// NotifyCNP: a congestion notification packet (opcode 0x81), paced by
	// Params.MinTimeBetweenCNPs.
	NotifyCNP Notify = iota
	// NotifyAck: the acknowledgement of a marked packet carries BECN and each
	// such acknowledgement counts as a CNP (HPCC's simulator). Nothing is paced
	// at the NP; the gate is Params.RateReduceMonitorPeriod at the RP.
	NotifyAck
)

// AlphaUpdate is what drives the estimate alpha.
type AlphaUpdate uint8

const (
	// AlphaOnCNP: each CNP raises alpha at once and restarts the alpha timer;
	// the timer lowers alpha each time it expires (SIGCOMM'15 DCQCN §3).
	AlphaOnCNP AlphaUpdate = iota
	// AlphaPeriodic: a free-running timer, begun by the first CNP, raises alpha
	// when a CNP came in the period that ends and lowers it otherwise
	// (ConnectX, HPCC's simulator). The first CNP begins the timer and is not
	// counted in its first period.
	AlphaPeriodic
)

// Params holds every knob of DCQCN. A value comes from [Preset]; the fields may
// then be changed, and [Params.Validate] says whether they make sense. An NP or
// RP borrows a *Params for its life: nobody may write to it meanwhile; many
// QPs share one. Rates are bit/s, a name in parentheses is the paper's symbol,
// the name before it mlxconfig's (lower case). See docs/dcqcn.md for the values
// of the presets.
type Params struct {
	// Name is the preset's name; free text, shown in reports.
	Name string
	// Notify: notify. CNP packets or flags in acknowledgements.
	Notify Notify

	// MinTimeBetweenCNPs: min_time_between_cnps (N, tau). The NP sends at most
	// one CNP of a QP in this time; 0: one for each marked packet.
	MinTimeBetweenCNPs time.Duration
	// NPWindow: np_window. Marks that come within MinTimeBetweenCNPs of a CNP
	// are answered by one CNP when that time is over (the paper) instead of
	// being forgotten (a plain limiter of CNPs).
	NPWindow bool
	// CNPDSCP: cnp_dscp. The DSCP of CNPs, 0–63. Carried for the adapter; the
	// NP does not read it.
	CNPDSCP uint8
	// CNPPrio: cnp_802p_prio. The priority of CNPs, 0–7. As CNPDSCP.
	CNPPrio uint8

	// DCETCPG: dce_tcp_g (g). The weight of the newest observation in alpha.
	// mlxconfig gives (1-g)·1024: 1019 there is {5, 1024} here.
	DCETCPG Fraction
	// DCETCPRTT: dce_tcp_rtt (K, tau'). The period of alpha's timer. With
	// AlphaOnCNP it must be longer than MinTimeBetweenCNPs, or alpha falls
	// between CNPs that follow each other as fast as they may.
	DCETCPRTT time.Duration
	// InitialAlphaValue: initial_alpha_value, in 1/1024 (0–1024). Alpha when
	// the first CNP arrives.
	InitialAlphaValue uint32
	// AlphaBits: alpha_bits, 10–32. Bits of alpha's fraction. At 32 alpha may
	// be exactly 1; with fewer it is a register whose largest value is
	// 1-2^-bits. Lowering rounds down and raising rounds up, so that alpha
	// reaches both ends: rounded to nearest, 10 bits with g = 1/256 would
	// stall at 0.125.
	AlphaBits uint8
	// AlphaUpdate: alpha_update. What drives alpha.
	AlphaUpdate AlphaUpdate
	// AlphaBeforeCut: alpha_before_cut. Whether alpha is updated before a cut
	// that happens at the same instant (ns3-rdma, HPCC's simulator) or after
	// it (the paper). With AlphaOnCNP and RateReduceMonitorPeriod > 0 alpha
	// changes when the CNP arrives, always before the cut.
	AlphaBeforeCut bool

	// RateReduceMonitorPeriod: rate_reduce_monitor_period. CNPs are gathered
	// over this period, which begins anew without a gap from the first CNP on;
	// a period with at least one ends with one cut. 0: each CNP cuts at once.
	RateReduceMonitorPeriod time.Duration
	// RPGGd: rpg_gd, 0–15. A cut takes R_C·alpha·1024/2^rpg_gd: 11 is alpha/2.
	RPGGd uint8
	// RPGMinDecFac: rpg_min_dec_fac, percent, 0–100. A cut leaves at least
	// this share of R_C.
	RPGMinDecFac uint8
	// RPGMinRate: rpg_min_rate. No cut goes below. If MinRateDiv is not 0 the
	// value is line/MinRateDiv.
	RPGMinRate uint64
	// MinRateDiv: see RPGMinRate.
	MinRateDiv uint32
	// RPGMaxRate: rpg_max_rate. An increase that reaches this rate releases
	// the limiter: R_C = R_T = line. 0: the line rate.
	RPGMaxRate uint64
	// RateToSetOnFirstCNP: rate_to_set_on_first_cnp. R_C and R_T are set to
	// this (at most the line rate) when the first CNP arrives, before any cut.
	// 0: left alone.
	RateToSetOnFirstCNP uint64
	// ClampTgtRate: clamp_tgt_rate. A cut always sets R_T to the R_C before
	// it. False: only if the byte counter has expired since the last cut.
	ClampTgtRate bool
	// ClampTgtRateAfterTimeInc: clamp_tgt_rate_after_time_inc. With
	// ClampTgtRate false: also if the timer has expired since the last cut.
	ClampTgtRateAfterTimeInc bool

	// RPGTimeReset: rpg_time_reset (T). The increase timer; 0: none.
	RPGTimeReset time.Duration
	// RPGByteReset: rpg_byte_reset (B). The byte counter, in bytes (mlxconfig:
	// in units of 64); 0: none. What exceeds B counts for the next interval.
	RPGByteReset uint64
	// RPGThreshold: rpg_threshold (F). Stage at which fast recovery ends:
	// max(stages) < F is fast recovery.
	RPGThreshold uint32
	// StageBeforeEvent: stage_before_event. Whether the stages are compared
	// with F as they were before the event counted (HPCC's simulator: F = 1
	// gives one step of fast recovery) or after (paper, ns3-rdma: F = 5 gives
	// four).
	StageBeforeEvent bool
	// RPGAIRate: rpg_ai_rate (R_AI). Step of R_T in additive increase. If
	// AIRateDiv is not 0 the value is line/AIRateDiv.
	RPGAIRate uint64
	// AIRateDiv: see RPGAIRate.
	AIRateDiv uint32
	// RPGHAIRate: rpg_hai_rate (R_HAI). Step of R_T in hyper increase. If
	// HAIRateDiv is not 0 the value is line/HAIRateDiv.
	RPGHAIRate uint64
	// HAIRateDiv: see RPGHAIRate.
	HAIRateDiv uint32
	// HyperAtThreshold: hyper_at_threshold. Hyper increase begins at
	// min(stages) = F (ns3-rdma) instead of above F (paper's figure, ConnectX).
	HyperAtThreshold bool
	// HyperByTimer: hyper_by_timer. Hyper increase looks at the time stage
	// alone (HPCC's simulator, which has no byte counter).
	HyperByTimer bool
	// HyperScaled: hyper_scaled. The i-th stage of hyper increase adds i·R_HAI
	// (paper, ns3-rdma) instead of R_HAI (ConnectX, HPCC's simulator).
	HyperScaled bool
	// HyperHalves: hyper_halves. A counter that expires in hyper increase runs
	// for half its interval next (ns3-rdma).
	HyperHalves bool
	// ExtraFastRecovery: extra_fast_recovery. While a stage is 1 and
	// R_T > 10·R_C an increase event divides R_T by 8 instead of adding to it
	// (802.1Qau, ns3-rdma).
	ExtraFastRecovery bool
}

// Scaled returns a copy whose rates given as a share of the line rate (preset
// hpcc) are absolute. An RP does without: it resolves shares by its own line.
func (p *Params) Scaled(line uint64) Params {
	q := *p
	q.RPGAIRate, q.AIRateDiv = p.ai(line), 0
	q.RPGHAIRate, q.HAIRateDiv = p.hai(line), 0
	q.RPGMinRate, q.MinRateDiv = share(p.RPGMinRate, p.MinRateDiv, line), 0
	return q
}

func (p *Params) ai(line uint64) uint64  { return share(p.RPGAIRate, p.AIRateDiv, line) }
func (p *Params) hai(line uint64) uint64 { return share(p.RPGHAIRate, p.HAIRateDiv, line) }

// floor is the least R_C on a line, from 1 to the line itself.
func (p *Params) floor(line uint64) uint64 {
	return min(max(share(p.RPGMinRate, p.MinRateDiv, line), 1), line)
}

// release is the R_C at which the limiter lets go.
func (p *Params) release(line uint64) uint64 {
	if p.RPGMaxRate == 0 {
		return line
	}
	return min(p.RPGMaxRate, line)
}

func share(rate uint64, div uint32, line uint64) uint64 {
	if div != 0 {
		return line / uint64(div)
	}
	return rate
}
