package theory

// QuantaBits is the bit times of one pause quantum (802.3 annex 31B).
const QuantaBits = 512

// MaxQuanta is the most that a PAUSE or PFC frame can ask for.
const MaxQuanta = 65535

// QuantaTime returns how long quanta last at a rate in bit/s, in ps rounded up
// (exact for the common rates: 5,120 ps each at 100 Gb/s). A class that hears
// nothing more goes on by itself when they are over (802.1Qbb).
func QuantaTime(quanta, rate int64) int64 {
	if quanta < 0 {
		return Never
	}
	return Serialise(mul(quanta, QuantaBits/8), rate)
}

// QuantaFor returns the quanta that last at least so many ps at a rate, at most
// MaxQuanta.
func QuantaFor(ps, rate int64) int64 {
	return min(MaxQuanta, mulDiv(max(ps, 0), max(rate, 0), QuantaBits*Second, true))
}
