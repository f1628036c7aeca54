package scenario

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Prios is a set of priorities, bit p for priority p. In files: [3, 4], 3, all
// or none.
type Prios uint8

// Has reports whether priority p is in it.
func (s Prios) Has(p uint8) bool { return p < 8 && s>>p&1 == 1 }

// String lists them as files do.
func (s Prios) String() string {
	var b []string
	for p := range uint8(8) {
		if s.Has(p) {
			b = append(b, strconv.Itoa(int(p)))
		}
	}
	return "[" + strings.Join(b, ", ") + "]"
}

// DSCPMap is the priority of each code point.
type DSCPMap [64]uint8

// PrioMap is a number 0..7 for each priority.
type PrioMap [8]uint8

// Weights is the weight of each priority.
type Weights [8]int32

// PrioRatios is a ratio for each priority; 0: none given.
type PrioRatios [8]Ratio

// Ignored is a part of the file that is not read.
type Ignored struct{}

// Select names endpoints or ports. In files it is one text or a list: names
// (host3), ranges (host8..host23 or host8..23), patterns (host*), one NIC of a
// host (host3/eth1; the first where none is named), all.
type Select []string

// maxSelect is the most names in one list.
const maxSelect = 100_000

// String lists the names as files do.
func (s Select) String() string {
	if len(s) == 1 {
		return s[0]
	}
	return "[" + strings.Join(s, ", ") + "]"
}

// QuantityUnit is the base unit of a Quantity.
type QuantityUnit uint8

// The units.
const (
	NoQuantity QuantityUnit = iota // not given
	Number                         // without unit
	BitsPerSecond
	Picoseconds
	ByteCount
)

// Quantity is a number with a unit of its own choice: 85Gbps, 200us, 8KB, 12,
// 5% (0.05).
type Quantity struct {
	Value float64 // in the base unit
	Unit  QuantityUnit
	text  string
}

// Given reports whether the file has it.
func (q Quantity) Given() bool { return q.Unit != NoQuantity }

func (q Quantity) String() string { return q.text }

func parseQuantity(s string) (Quantity, error) {
	t := strings.TrimSpace(s)
	num, suffix := splitNumber(t)
	r, ok := decimal(num)
	if !ok {
		return Quantity{}, fmt.Errorf("%q is not a number, as in 12, 5%%, 85Gbps, 200us or 8KB", clip(s))
	}
	q := Quantity{Unit: Number, text: t}
	switch suffix {
	case "":
	case "%":
		r.Quo(r, big.NewRat(100, 1))
	default:
		found := false
		for _, k := range []struct {
			unit QuantityUnit
			kind *quantityKind
		}{{BitsPerSecond, rateKind}, {Picoseconds, timeKind}, {ByteCount, byteKind}} {
			for _, u := range k.kind.units {
				if u.name == suffix {
					r.Mul(r, new(big.Rat).SetInt64(u.size))
					q.Unit, found = k.unit, true
				}
			}
		}
		if !found {
			return Quantity{}, fmt.Errorf("%q: unknown unit %q: give none, %%, bps to Tbps, ps to s, or B to GiB", clip(s), clip(suffix))
		}
	}
	q.Value, _ = r.Float64()
	return q, nil
}

func parseHeadroom(s string) (Headroom, error) {
	switch r := HeadroomRule(s); r {
	case HeadroomAuto, HeadroomHPCC, HeadroomConweave:
		return Headroom{Rule: r}, nil
	case HeadroomBytes: // a word of the model, not of files
	}
	n, err := byteKind.parse(s)
	if err != nil || n < 0 || n > 1e9 {
		return Headroom{}, fmt.Errorf("%q is not auto, hpcc, conweave, or an amount of data up to 1GB, as in 40KB", clip(s))
	}
	return Headroom{Rule: HeadroomBytes, Bytes: Bytes(n)}, nil
}

func (h Headroom) String() string {
	if h.Rule == HeadroomBytes {
		return h.Bytes.String()
	}
	return string(h.Rule)
}

func parseSeed(s string) (ECMPSeed, error) {
	switch s {
	case "per-switch":
		return ECMPSeed{PerSwitch: true}, nil
	case "same":
		return ECMPSeed{}, nil
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return ECMPSeed{}, fmt.Errorf("%q is not per-switch, same, or a number up to 4294967295", clip(s))
	}
	return ECMPSeed{Value: uint32(n)}, nil
}

func (s ECMPSeed) String() string {
	if s.PerSwitch {
		return "per-switch"
	}
	if s.Value == 0 {
		return "same"
	}
	return strconv.FormatUint(uint64(s.Value), 10)
}
