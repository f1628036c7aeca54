package theory_test

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/theory"
)

// 802.3 annex 31B: 512 bit times; 65535 quanta last 335.5 us at 100G, 839 at 40G, 83.9 at 400G.
func TestQuanta(t *testing.T) {
	for _, c := range []struct {
		rate, one int64
		most      string
	}{
		{10e9, 51200, "3355.4"},
		{25e9, 20480, "1342.2"},
		{40e9, 12800, "839"},
		{100e9, 5120, "335.5"},
		{200e9, 2560, "167.8"},
		{400e9, 1280, "83.9"},
	} {
		equal(t, "quantum", theory.QuantaTime(1, c.rate), c.one)
		printed(t, "65535 quanta, us", float64(theory.QuantaTime(theory.MaxQuanta, c.rate))/1e6, c.most)
		equal(t, "exact", theory.QuantaTime(theory.MaxQuanta, c.rate), theory.MaxQuanta*c.one)
		equal(t, "back", theory.QuantaFor(777*c.one, c.rate), 777)
		equal(t, "back, a little more", theory.QuantaFor(777*c.one+1, c.rate), 778)
	}
	equal(t, "at most", theory.QuantaFor(theory.Second, 100e9), 65535)
	equal(t, "no rate", theory.QuantaTime(1, 0), theory.Never)
	equal(t, "negative", theory.QuantaTime(-1, 1), theory.Never)
	equal(t, "nothing", theory.QuantaFor(-1, 100e9), 0)
}
