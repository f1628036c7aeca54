package scenario

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// scalar reads one text into a value and checks its tags.
func scalar(s string, v reflect.Value, tag reflect.StructTag) error {
	switch v.Type() {
	case typeTime:
		return quantity(timeKind, s, v, tag)
	case typeRate:
		return quantity(rateKind, s, v, tag)
	case typeBytes:
		return quantity(byteKind, s, v, tag)
	case typeLength:
		return quantity(lengthKind, s, v, tag)
	case typeRatio:
		return ratio(s, v, tag)
	case typeQuantity:
		return set(v, s, parseQuantity)
	case typeHeadroom:
		return set(v, s, parseHeadroom)
	case typeSeed:
		return set(v, s, parseSeed)
	}
	switch v.Kind() {
	case reflect.String:
		return text(s, v, tag)
	case reflect.Bool:
		switch s {
		case "true", "yes", "on":
			v.SetBool(true)
		case "false", "no", "off":
			v.SetBool(false)
		default:
			return fmt.Errorf("%q is not true or false", clip(s))
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", clip(s))
		}
		if err := within(n, s, tag, parseInt, formatInt); err != nil {
			return err
		}
		if v.OverflowInt(n) {
			return fmt.Errorf("%s is too large", clip(s))
		}
		v.SetInt(n)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := strconv.ParseUint(strings.ReplaceAll(s, "_", ""), 0, 64)
		if err != nil || len(s) > 1 && s[0] == '0' && s[1] != 'x' {
			return fmt.Errorf("%q is not a whole number from 0", clip(s))
		}
		if v.Kind() != reflect.Uint64 {
			if err := within(int64(min(n, 1<<62)), s, tag, parseInt, formatInt); err != nil {
				return err
			}
		}
		if v.OverflowUint(n) {
			return fmt.Errorf("%s is too large", clip(s))
		}
		v.SetUint(n)
	default:
		return fmt.Errorf("%s cannot be set", v.Type())
	}
	return nil
}

func set[T any](v reflect.Value, s string, parse func(string) (T, error)) error {
	x, err := parse(s)
	if err != nil {
		return err
	}
	v.Set(reflect.ValueOf(x))
	return nil
}

func parseInt(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }
func formatInt(n int64) string         { return strconv.FormatInt(n, 10) }

func quantity(k *quantityKind, s string, v reflect.Value, tag reflect.StructTag) error {
	n, err := k.parse(s)
	if err != nil {
		return err
	}
	if err := within(n, s, tag, k.parse, k.format); err != nil {
		return err
	}
	v.SetInt(n)
	return nil
}

func ratio(s string, v reflect.Value, tag reflect.StructTag) error {
	r, err := parseRatio(s)
	if err != nil {
		return err
	}
	parse := func(s string) (int64, error) { r, err := parseRatio(s); return int64(r), err }
	format := func(n int64) string { return Ratio(n).String() }
	if err := within(int64(r), s, tag, parse, format); err != nil {
		return err
	}
	v.SetUint(uint64(r))
	return nil
}

// within checks the limits in the tags min and max.
func within(n int64, s string, tag reflect.StructTag, parse func(string) (int64, error), format func(int64) string) error {
	if lo := tag.Get("min"); lo != "" {
		if m, err := parse(lo); err == nil && n < m {
			return fmt.Errorf("%s is below the least value, %s", clip(s), format(m))
		}
	}
	if hi := tag.Get("max"); hi != "" {
		if m, err := parse(hi); err == nil && n > m {
			return fmt.Errorf("%s is above the greatest value, %s", clip(s), format(m))
		}
	}
	return nil
}

// maxText is the longest text of one value.
const maxText = 1 << 16

func text(s string, v reflect.Value, tag reflect.StructTag) error {
	if len(s) > maxText {
		return fmt.Errorf("a text of %d bytes; the limit is %d", len(s), maxText)
	}
	if enum := tag.Get("enum"); enum != "" {
		choices := strings.Split(enum, "|")
		for _, c := range choices {
			if c == s {
				v.SetString(s)
				return nil
			}
		}
		if choices[0] == "" {
			choices = choices[1:]
		}
		if near := nearest(s, choices); near != "" {
			return fmt.Errorf("unknown %q; did you mean %s?", clip(s), near)
		}
		return fmt.Errorf("unknown %q; give %s", clip(s), strings.Join(choices, ", "))
	}
	v.SetString(s)
	return nil
}
