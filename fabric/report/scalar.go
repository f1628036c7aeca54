package report

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// scalar sets v, or says what is wrong with the token.
func (d *decoder) scalar(v reflect.Value, t json.Token, f *field) string {
	switch v.Kind() {
	case reflect.String:
		if s, ok := t.(string); ok {
			d.used += int64(len(s))
			v.SetString(s)
			return ""
		}
		return nameOf(t) + " where a text is needed"
	case reflect.Bool:
		if b, ok := t.(bool); ok {
			v.SetBool(b)
			return ""
		}
		return nameOf(t) + " where true or false is needed"
	case reflect.Float64:
		n, ok := t.(json.Number)
		x, err := n.Float64()
		if !ok || err != nil || math.IsInf(x, 0) {
			return nameOf(t) + " where a number is needed"
		}
		v.SetFloat(x)
		return ""
	case reflect.Int, reflect.Int64, reflect.Int32:
		return signed(v, t)
	default:
		return unsigned(v, t, f)
	}
}

func signed(v reflect.Value, t json.Token) string {
	if t == nil && v.Type() == timeType {
		v.SetInt(int64(sim.Never))
		return ""
	}
	n, ok := t.(json.Number)
	if !ok {
		return nameOf(t) + " where a number is needed"
	}
	x, err := strconv.ParseInt(n.String(), 10, v.Type().Bits())
	if err != nil {
		return fmt.Sprintf("%s: must be a whole number of %d bits", n, v.Type().Bits())
	}
	v.SetInt(x)
	return ""
}

func unsigned(v reflect.Value, t json.Token, f *field) string {
	var digits string
	base := 10
	ws := words(v.Type())
	switch x := t.(type) {
	case json.Number:
		digits = x.String()
	case string:
		if i := slices.Index(ws, x); i >= 0 {
			v.SetUint(uint64(i))
			return ""
		}
		if len(ws) > 0 {
			return fmt.Sprintf("%q: must be one of %s", x, strings.Join(ws, ", "))
		}
		if f == nil || !f.text {
			return "a text where a number is needed"
		}
		if digits = x; f.hex {
			digits, base = strings.TrimPrefix(x, "0x"), 16
		}
	default:
		return nameOf(t) + " where a number is needed"
	}
	n, err := strconv.ParseUint(digits, base, v.Type().Bits())
	if err != nil {
		return fmt.Sprintf("%s: must be a whole number of %d bits, not negative", digits, v.Type().Bits())
	}
	v.SetUint(n)
	return ""
}
