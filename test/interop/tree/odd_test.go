//go:build linux

package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/diag/listing"
	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// statFiles are the files that ibstat reads, below a device, and how its line about each begins.
var statFiles = map[string]string{
	"node_type": "", "fw_ver": "Firmware version", "hw_rev": "Hardware version", "hca_type": "CA type", "node_guid": "Node GUID", "sys_image_guid": "System image GUID",
	"ports/1/lid_mask_count": "LMC", "ports/1/sm_lid": "SM lid", "ports/1/sm_sl": "none", "ports/1/lid": "Base lid", "ports/1/state": "State", "ports/1/phys_state": "Physical state",
	"ports/1/rate": "Rate", "ports/1/cap_mask": "Capability mask", "ports/1/link_layer": "Link layer", "ports/1/gids/0": "Port GUID", "ports/1/pkeys/0": "none",
}

// oddities are what stands in such a file instead.
var oddities = map[string]string{
	"empty": "\n", "no end of line": "5", "nothing": "\x00", "words": "no idea\n", "negative": "-1\n", "large": "4294967297\n", "huge": "99999999999999999999\n",
	"octal": "010\n", "hexadecimal": "0xb\n", "spaces": "  3  \n", "two lines": "2: INIT\nmore\n", "binary": "\x7fELF\x01\x00\xff\xfe\x80\n",
	"long": strings.Repeat("4", 200) + "\n", "giant": strings.Repeat("5: x", 2<<20), "missing": "", "EINVAL": "", "EACCES": "",
}

// One file of a device is odd at a time. Ours prints everything that Debian's ibstat prints of the sound tree, but for
// the line about that file. Where the file is one that drivers have so, or is refused, and Debian's ibstat does not
// give up, ours prints the same to the byte.
func TestIBStatOfOddFiles(t *testing.T) {
	judge.Need(t, "infiniband-diags")
	text := trees(t)["mlx4"]
	var sound result
	inside(t, plant(t, filepath.Join(t.TempDir(), "sys"), text), "", func() { sound = run(t, "ibstat") })
	printed, refused := 0, 0
	for oddity, content := range oddities {
		for file, label := range statFiles {
			what := fmt.Sprintf("%s: %s", file, oddity)
			p := plant(t, filepath.Join(t.TempDir(), "sys"), text)
			name := filepath.Join("class/infiniband/mlx4_1", file)
			switch {
			case oddity == "missing":
				if err := os.Remove(filepath.Join(p.dir, name)); err != nil {
					t.Fatal(err)
				}
			case refusals[oddity] != "":
				p.refused[name] = oddity
			default:
				write(t, filepath.Join(p.dir, name), content)
			}
			inside(t, p, "", func() {
				s := host(t)
				want, got := run(t, "ibstat"), listed(listing.IBStat(s, listing.IBStatOptions{}))
				if diff := butLine(sound.out, got.out, label); got.status != 0 || diff != "" && label != "" {
					t.Errorf("%s: exit %d; beside the line about it: -sound tree +ours\n%s", what, got.status, diff)
				}
				if first, _, _ := strings.Cut(sound.out, "CA 'mlx4_1'"); label == "" && !strings.HasPrefix(got.out, first) {
					t.Errorf("%s: the device beside it is not as in the sound tree:\n%s", what, got.out)
				}
				if want.status != 0 {
					refused++
					return
				}
				printed++
				if label != "" && slices.Contains([]string{"empty", "missing", "EINVAL", "EACCES"}, oddity) {
					same(t, what, want, got)
				}
			})
		}
	}
	if printed < 50 || refused < 50 {
		t.Errorf("Debian's ibstat printed %d trees and gave up %d", printed, refused)
	}
}

// butLine compares two texts without their second half's lines that begin with a label: those of the second device.
func butLine(want, got, label string) string {
	without := func(s string) (kept []string) {
		second := false
		for l := range strings.Lines(s) {
			second = second || strings.HasSuffix(l, "'mlx4_1'\n")
			if !second || !strings.HasPrefix(strings.TrimLeft(l, "\t"), label+": ") {
				kept = append(kept, l)
			}
		}
		return kept
	}
	return cmp.Diff(without(want), without(got))
}
