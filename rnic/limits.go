package rnic

import "fmt"

// Limits are the most objects of each kind, and the largest of each size, that
// an adapter grants. A zero field takes the default of [DefaultLimits].
type Limits struct {
	MaxQP       int
	MaxCQ       int
	MaxMR       int
	MaxMW       int
	MaxPD       int
	MaxAH       int
	MaxSRQ      int
	MaxQPWR     int // work requests of one queue
	MaxSRQWR    int // receives of one shared receive queue
	MaxCQE      int // completions of one queue
	MaxSGE      int // elements of one work request
	MaxInline   int // bytes
	MaxRdAtomic int // READs and ATOMICs outstanding, in either role; at most 255
	MaxMRSize   uint64
	// Multicast groups with queue pairs of this adapter, and queue pairs of one.
	MaxMcastGroup int
	MaxMcastQP    int
}

// DefaultLimits returns the limits of an adapter that sets none: at least those
// of Linux' rxe driver.
func DefaultLimits() Limits {
	return Limits{
		MaxQP:       1 << 16,
		MaxCQ:       1 << 16,
		MaxMR:       1 << 19,
		MaxMW:       1 << 19,
		MaxPD:       1 << 15,
		MaxAH:       1 << 15,
		MaxSRQ:      1 << 15,
		MaxSRQWR:    1 << 15,
		MaxQPWR:     1 << 15,
		MaxCQE:      1 << 22,
		MaxSGE:      32,
		MaxInline:   1024,
		MaxRdAtomic: 128,
		MaxMRSize:   1 << 62,

		MaxMcastGroup: 256, // each is a socket of the UDP link
		MaxMcastQP:    1024,
	}
}

// Sizes of a queue pair whose QPCap leaves them zero.
const (
	defaultSendWR  = 128
	defaultRecvWR  = 512
	defaultSendSGE = 2
	defaultRecvSGE = 1
	defaultInline  = 64
)

// The bounds of what a number format can hold, whatever the configuration.
const (
	hardMaxQP = 1 << 23
	hardMaxAH = 1<<ahIndexBits - 1
	hardMaxWR = 1 << 24
	// Regions and windows share 2^24 keys, of which half stay free.
	hardMaxKeys = 1 << 22
)

// fill replaces zeros by defaults and refuses what cannot be.
func (l Limits) fill() (Limits, error) {
	d := DefaultLimits()
	rows := []struct {
		name string
		v    *int
		def  int
		max  int
	}{
		{"MaxQP", &l.MaxQP, d.MaxQP, hardMaxQP},
		{"MaxCQ", &l.MaxCQ, d.MaxCQ, 1 << 24},
		{"MaxMR", &l.MaxMR, d.MaxMR, hardMaxKeys},
		{"MaxMW", &l.MaxMW, d.MaxMW, hardMaxKeys},
		{"MaxPD", &l.MaxPD, d.MaxPD, 1 << 24},
		{"MaxAH", &l.MaxAH, d.MaxAH, hardMaxAH},
		{"MaxSRQ", &l.MaxSRQ, d.MaxSRQ, 1 << 24},
		{"MaxSRQWR", &l.MaxSRQWR, d.MaxSRQWR, hardMaxWR},
		{"MaxMcastGroup", &l.MaxMcastGroup, d.MaxMcastGroup, 1 << 16},
		{"MaxMcastQP", &l.MaxMcastQP, d.MaxMcastQP, 1 << 16},
		{"MaxQPWR", &l.MaxQPWR, d.MaxQPWR, hardMaxWR},
		{"MaxCQE", &l.MaxCQE, d.MaxCQE, 1 << 24},
		{"MaxSGE", &l.MaxSGE, d.MaxSGE, 1 << 10},
		{"MaxInline", &l.MaxInline, d.MaxInline, 1 << 16},
		{"MaxRdAtomic", &l.MaxRdAtomic, d.MaxRdAtomic, 255},
	}
	for _, r := range rows {
		if *r.v == 0 {
			*r.v = r.def
		}
		if *r.v < 0 || *r.v > r.max {
			return l, fmt.Errorf("adapter limit %s is %d, can be 1 to %d: %w", r.name, *r.v, r.max, ErrInvalid)
		}
	}
	if l.MaxMRSize == 0 {
		l.MaxMRSize = d.MaxMRSize
	}
	return l, nil
}
