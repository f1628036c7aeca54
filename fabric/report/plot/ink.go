package plot

import "image/color"

// Ink is a colour by its role.
type Ink uint8

// The roles. Series(i) gives those of lines.
const (
	Paper Ink = iota // background
	Text             // titles and values
	Muted            // axes and remarks
	Grid
	Good
	Warn
	Bad
	Series0
	numInks = Series0 + seriesInks
)

const seriesInks = 8

// Series returns the ink of the i-th line; they repeat after eight.
func Series(i int) Ink { return Series0 + Ink(uint(i)%seriesInks) }

// palette holds a role's colours on white and on black. Each has a contrast of
// at least 3:1 with its paper, those of text at least 4.5:1 (WCAG 2.1, 1.4.3
// and 1.4.11); a test computes it.
var palette = [numInks][2]uint32{
	Paper:       {0xffffff, 0x0d1117},
	Text:        {0x1b1f24, 0xe6edf3},
	Muted:       {0x57606a, 0x9198a1},
	Grid:        {0xd8dee4, 0x30363d}, // no meaning: exempt
	Good:        {0x1a7f37, 0x4ac26b},
	Warn:        {0x9a5b00, 0xe3a53a},
	Bad:         {0xcf222e, 0xff7b72},
	Series0 + 0: {0x0067b1, 0x5eb1ff},
	Series0 + 1: {0xc2410c, 0xff9364},
	Series0 + 2: {0x00794f, 0x4fd19b},
	Series0 + 3: {0x8f4fa8, 0xd19be8},
	Series0 + 4: {0x8a6100, 0xe3c341},
	Series0 + 5: {0x0e7c86, 0x56d4dd},
	Series0 + 6: {0xb4245d, 0xff86b3},
	Series0 + 7: {0x5b6472, 0xaab4c0},
}

func (k Ink) light() color.RGBA {
	c := palette[k%numInks][0]
	return color.RGBA{R: uint8(c >> 16), G: uint8(c >> 8), B: uint8(c), A: 255}
}

// dashes by number: lines beyond the fourth are told apart without colour too.
var dashes = [...][]float64{nil, {7, 3}, {2, 3}, {9, 3, 2, 3}}

// Dash returns the pattern, in pixels on and off, of the i-th line.
func Dash(i int) []float64 {
	return dashes[uint(i)/4%uint(len(dashes))]
}
