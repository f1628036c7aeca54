package dcqcn

import (
	"errors"
	"fmt"
)

// Validate says in one line what is impossible about the parameters: knob,
// value and limit. What passes neither stalls nor overflows an RP.
func (p *Params) Validate() error {
	for _, k := range Knobs() {
		if err := k.check(p); err != nil {
			return err
		}
	}
	timer, bytes := p.RPGTimeReset > 0, p.RPGByteReset > 0
	if !timer && !bytes {
		return errors.New("rpg_time_reset and rpg_byte_reset are both 0: a rate once cut would never rise")
	}
	if p.RPGMaxRate != 0 && p.MinRateDiv == 0 && p.RPGMinRate > p.RPGMaxRate {
		return fmt.Errorf("rpg_min_rate: %s is above rpg_max_rate, %s", get("rpg_min_rate", p), get("rpg_max_rate", p))
	}
	if p.RPGAIRate == 0 && p.AIRateDiv == 0 {
		reached := timer && (bytes || p.HyperByTimer)
		if p.RPGHAIRate == 0 && p.HAIRateDiv == 0 || !reached {
			return errors.New("rpg_ai_rate is 0 and hyper increase adds nothing or is never reached: the target rate would never rise")
		}
	}
	return nil
}

// Warnings says what is unwise about the parameters on a line of that many
// bit/s, and what will come of it. The parameters are valid.
func (p *Params) Warnings(line uint64) []string {
	var w []string
	add := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	if p.Notify == NotifyCNP && p.AlphaUpdate == AlphaOnCNP && p.DCETCPRTT <= p.MinTimeBetweenCNPs {
		add("dce_tcp_rtt %s is not above min_time_between_cnps %s: alpha falls between CNPs that come as fast as they may",
			get("dce_tcp_rtt", p), get("min_time_between_cnps", p))
	}
	if low := share(p.RPGMinRate, p.MinRateDiv, line); low >= line {
		add("rpg_min_rate %s is not below the line rate: no CNP slows a QP", get("rpg_min_rate", p))
	}
	if p.RPGMinDecFac == 100 {
		add("rpg_min_dec_fac 100: a cut takes nothing")
	}
	if p.RPGMaxRate > line {
		add("rpg_max_rate %s is above the line rate and does nothing", get("rpg_max_rate", p))
	}
	if r := p.RateToSetOnFirstCNP; r > line {
		add("rate_to_set_on_first_cnp %s is above the line rate, which is used instead", get("rate_to_set_on_first_cnp", p))
	}
	if p.Notify == NotifyCNP && p.MinTimeBetweenCNPs == 0 && p.RateReduceMonitorPeriod == 0 {
		add("min_time_between_cnps and rate_reduce_monitor_period are both 0: each marked packet cuts the rate")
	}
	if p.Notify == NotifyAck && p.RateReduceMonitorPeriod == 0 {
		add("notify ack with rate_reduce_monitor_period 0: each flagged acknowledgement cuts the rate")
	}
	if p.RPGTimeReset == 0 {
		add("rpg_time_reset 0: only bytes sent raise the rate, which takes %d bytes at any rate, however low", p.RPGByteReset)
	}
	return w
}

func get(name string, p *Params) string {
	k, _ := FindKnob(name)
	return k.Get(p)
}
