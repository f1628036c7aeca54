// Package dcqcn owns the congestion control of one queue pair: the notification
// point ([NP]) that answers CE marks, the reaction point ([RP]) that turns
// notifications into a sending rate, and every knob of the paper and of mlxconfig
// ([Params], [Knobs]) with the named sets of them ([Preset]).
//
// It never holds a clock, a timer, a packet or a float: it is told times and
// byte counts, gives back rates and deadlines, and is the same bit for bit on
// every machine. The adapter (rnic) calls it, on a wire as in the simulator: Marked
// and Due decide on CNPs, Congestion takes them, Sent counts bytes, Rate paces, and
// Deadline says when to look again. The congestion point is the switch's.
//
//	CE-marked packet ─▶ NP.Marked ─▶ CNP now?        CNP ─▶ RP.Congestion ─▶ R_C falls
//	                    NP.Deadline, Due ─▶ later    timer, RP.Sent ──────▶ R_C rises
//
// The RP has the current rate R_C, the target rate R_T and the estimate alpha, and
// two counters that expire: the timer every T and the byte counter every B. Their
// expiries since the last cut are the time stage and the byte stage. On events:
//
//	event                    R_T                       R_C              alpha
//	start                    line                      line             initial
//	cut                      R_C if clamped            R_C·(1-alpha/2)
//	  max(stages) < F        as it is  (recovery)      (R_C+R_T)/2
//	  else                   + R_AI    (additive)      (R_C+R_T)/2
//	  min(stages) > F        + i·R_HAI (hyper)         (R_C+R_T)/2
//	CNP in alpha's period                                               (1-g)·alpha + g
//	none in it                                                          (1-g)·alpha
//
// A cut resets stages and counters. At line rate the counters rest. Where the
// published versions differ there is a knob; this is how the presets differ:
//
//	                     paper                  mlx5                   hpcc
//	told by              CNP                    CNP                    BECN in ACKs
//	NP                   1 CNP in 50 us, marks  1 CNP in 4 us, marks   each ACK tells
//	                     of the window answered in between forgotten
//	                     at its end
//	cut                  at the CNP             every 4 us, if a CNP   every 4 us, if a flag
//	                                            came                   came
//	alpha                at each CNP; falls     every 1 us up or down  every 1 us up or down
//	                     every 55 us without
//	g, bits of alpha     1/256, 32              5/1024, 10             1/256, 32
//	alpha and cut        cut first              alpha first            alpha first
//	R_T clamped          always                 after an increase      after an increase
//	T, B                 55 us, 10 MB           300 us, 2097088 B      300 us, none
//	F                    5: five of recovery    1: one of recovery     1: one of recovery
//	hyper                both above F, i·R_HAI  both above F, R_HAI    time stage above F, R_HAI
//	R_AI, R_HAI          40, 200 Mb/s           5, 50 Mb/s             line/5000, line/500
//	minimum rate         100 Mb/s               1 Mb/s                 line/100
//
// Sources: SIGCOMM'15 DCQCN §3 and CoNEXT'16 for paper (R_HAI and the minimum
// from ns3-rdma, its authors' simulator); NVIDIA's page of DCQCN parameters and
// printed mlxconfig for mlx5; HPCC's simulator for hpcc. Not known of the NIC, and
// so chosen: how alpha rounds (see Params.AlphaBits), that stages are compared
// before they count (with F = 1 there would be no recovery otherwise), the unit of
// rpg_byte_reset (64 B: 32767 of them are the 2 MB that test equipment shows), and
// that a limiter once released is not a first one again.
//
// All arithmetic is on integers: rates in bit/s, alpha with up to 32 bits of
// fraction, products of 128 bits. A cut takes what rounding down leaves, the
// average of R_C and R_T rounds up so that it arrives. No timer runs: alpha and
// increases catch up when somebody asks, equal to a model that ticks them all.
// alpha takes at most some thousand steps for that, increases are added up once
// they are alike, so a silence of a year costs no more than one of a second.
//
// Read params.go, np.go, rp.go, alpha.go, cut.go, increase.go; then preset.go, and
// knob.go, knobs.go, value.go, validate.go for names, texts and limits.
package dcqcn
