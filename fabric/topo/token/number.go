package token

import "math/bits"

// Decimal reads a decimal number, not negative, with an optional point and
// exponent, and returns it times 10^scale, rounded to the nearest whole, half
// upwards. It fails if the text is no number or the result exceeds most.
func Decimal(text string, scale int, most uint64) (uint64, bool) {
	return scaled(text, 1, scale, most)
}

// scaled is Decimal times by, exact in 128 bits before it rounds.
func scaled(text string, by uint64, scale int, most uint64) (uint64, bool) {
	mant, exp, ok := split(text)
	if !ok || mant == 0 {
		return 0, ok
	}
	exp += scale
	for ; exp < -19; exp++ { // 10^19 is the largest power a uint64 holds
		mant /= 10
	}
	hi, lo := bits.Mul64(mant, by)
	for ; exp > 0; exp-- {
		if hi != 0 {
			return 0, false
		}
		hi, lo = bits.Mul64(lo, 10)
	}
	d := uint64(1)
	for range -exp {
		d *= 10
	}
	if hi >= d {
		return 0, false
	}
	q, rem := bits.Div64(hi, lo, d)
	if rem >= d-rem {
		q++
	}
	return q, q <= most
}

// split reads text as mant × 10^exp. Digits beyond the 19th are dropped.
func split(text string) (mant uint64, exp int, ok bool) {
	digits, point, i := 0, false, 0
	for ; i < len(text); i++ {
		c := text[i]
		if c == '.' && !point {
			point = true
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		digits++
		if mant >= 1e18 { // another digit might not fit
			if !point {
				exp++
			}
			continue
		}
		mant = mant*10 + uint64(c-'0')
		if point {
			exp--
		}
	}
	if digits == 0 {
		return 0, 0, false
	}
	if i == len(text) {
		return mant, exp, true
	}
	if c := text[i]; c != 'e' && c != 'E' {
		return 0, 0, false
	}
	e, ok := exponent(text[i+1:])
	return mant, exp + e, ok
}

func exponent(text string) (int, bool) {
	neg := false
	if text != "" && (text[0] == '-' || text[0] == '+') {
		neg = text[0] == '-'
		text = text[1:]
	}
	if text == "" || len(text) > 4 {
		return 0, false
	}
	e := 0
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		e = e*10 + int(text[i]-'0')
	}
	if neg {
		e = -e
	}
	return e, true
}

// Int reads a field as a whole number from low to high. what is its name in
// the error.
func (r *Reader) Int(f Field, what string, low, high int64) (int64, error) {
	neg, text := false, f.Text
	if text != "" && text[0] == '-' {
		neg, text = true, text[1:]
	}
	v := uint64(0)
	ok := text != ""
	for i := range len(text) {
		c := text[i]
		if c < '0' || c > '9' {
			ok = false
			break
		}
		if v > (1<<63-1)/10-1 {
			return 0, r.Fail(f, "%s %s is over the limit of %d", what, f.Text, high)
		}
		v = v*10 + uint64(c-'0')
	}
	if !ok {
		return 0, r.Fail(f, "%s %q is not a whole number", what, f.Text)
	}
	n := int64(v)
	if neg {
		n = -n
	}
	if n > high {
		return 0, r.Fail(f, "%s %d is over the limit of %d", what, n, high)
	}
	if n < low {
		return 0, r.Fail(f, "%s %d is less than %d", what, n, low)
	}
	return n, nil
}

// NextInt is Int for the next field; a missing one is an error.
func (r *Reader) NextInt(what string, low, high int64) (int64, error) {
	f, ok := r.Next()
	if !ok {
		if r.err != nil {
			return 0, r.err
		}
		return 0, r.FailEnd("%s is missing: the file ends here", what)
	}
	return r.Int(f, what, low, high)
}

// Share reads a field as a number from 0 to 1 and returns it in units of 2^-32.
func (r *Reader) Share(f Field, what string) (uint64, error) {
	const one = 1e18
	v, ok := Decimal(f.Text, 18, one)
	if !ok {
		return 0, r.Fail(f, "%s %q is not a number from 0 to 1", what, f.Text)
	}
	hi, lo := bits.Mul64(v, 1<<32)
	lo, carry := bits.Add64(lo, one/2, 0)
	q, _ := bits.Div64(hi+carry, lo, one)
	return q, nil
}
