package dcqcn

import (
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
)

// What a packet costs: the rate is asked and the bytes are counted.
func BenchmarkPacket(b *testing.B) {
	for _, name := range Presets() {
		b.Run(name, func(b *testing.B) {
			p, _ := Preset(name)
			var r RP
			r.Start(0, &p, 100*giga)
			now := clock.Time(0)
			for i := 0; b.Loop(); i++ {
				if i%1024 == 0 {
					r.Congestion(now)
				}
				now += 100
				r.Sent(now, 1048)
				r.Rate(now)
			}
		})
	}
}

// A CNP after 50 us: alpha catches up over 50 of its timer's periods.
func BenchmarkCongestion(b *testing.B) {
	for _, name := range Presets() {
		b.Run(name, func(b *testing.B) {
			p, _ := Preset(name)
			var r RP
			r.Start(0, &p, 100*giga)
			now := clock.Time(0)
			for b.Loop() {
				now += 50 * us
				r.Congestion(now)
			}
		})
	}
}

// The dearest catch-up: alpha falls from the top to 0 and R_C climbs from the
// floor to the line, in one call.
func BenchmarkYearOfSilence(b *testing.B) {
	for _, name := range Presets() {
		b.Run(name, func(b *testing.B) {
			p, _ := Preset(name)
			var low RP
			low.Start(0, &p, 100*giga)
			for i := range clock.Time(100) {
				low.Congestion(i * 10 * us)
			}
			year := clock.Time(365 * 24 * time.Hour)
			for b.Loop() {
				r := low
				r.Congestion(year)
			}
		})
	}
}
