package dcqcn

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/dcqcn.md")

const docsHead = `# DCQCN: presets and knobs

Congestion control of queue pairs, the same code on a wire and in the simulator
(package ` + "`transport/dcqcn`" + `, whose documentation has the state table). A scenario
names a preset and what differs from it:

` + "```yaml" + `
dcqcn:
  preset: mlx5
  rpg_ai_rate: 20Mbps     # a unit,
  rpg_time_reset: 55      # or a bare number in the unit of the table, as mlxconfig takes it,
  rpg_hai_rate: line/500  # or a share of the line rate
  g: 1/256                # symbols of the paper are names too
` + "```" + `

Times take ns, us, ms, s; rates bps, kbps, Mbps, Gbps, Tbps; sizes B, KB, MB (thousands) and KiB, MiB. Switches are true
or false. The knobs below ` + "`rpg_`, `dce_`, `clamp_`, `cnp_`" + ` and their like have mlxconfig's names in lower case; the
others are rules on which the published versions differ.

## The presets

- **paper**: SIGCOMM'15 with the parameters of the fluid model (CoNEXT'16). R_HAI and the minimum rate, which the paper
  does not give, are those of its authors' simulator.
- **mlx5**: a ConnectX as shipped. alpha has 10 bits; lowering rounds down and raising rounds up, so that it reaches 0 and 1023.
- **hpcc**: what HPCC's simulator runs as "dcqcn": flags in acknowledgements instead of CNPs, no byte counter, rates that grow with the line.

`

const docsTail = `
## Rules worth knowing

- **The window of the notification point** (` + "`np_window`" + `). The paper answers the marks of a window with one CNP at its end. A
  notification point that forgets them is no detail: with a fixed marking probability the rate comes out a fifth
  higher, and the queue of long flows a quarter longer than the theorem has it.
- **The clamp** (` + "`clamp_tgt_rate`, `clamp_tgt_rate_after_time_inc`" + `). After a clamp the way back to the old rate is R_AI by R_AI. From 10
  to 100 Gb/s in steps of 5 Mb/s every 300 us takes 5.4 s without a single mark; that is why rare marks can hold a
  fast flow down, and why thresholds must exceed the largest harmless burst.
- **F** (` + "`rpg_threshold`, `stage_before_event`" + `). Compared before the event counts, F = 5 gives five steps of recovery, as Theorem 1 of
  CoNEXT'16 has it; compared after it (ns3-rdma), four.
- **Byte counter** (` + "`rpg_byte_reset`" + `). mlxconfig's 32767 are units of 64 B here, 2097088 B. NVIDIA's texts say bytes, which would be 33 KB; test
  equipment that offers the same defaults says 2 MB.
- **Two gates.** ` + "`min_time_between_cnps`" + ` limits at the receiver, ` + "`rate_reduce_monitor_period`" + ` at the sender. Either alone gives
  about the same granularity; a receiver without the first and a sender without the second cut at every mark.
- **At line rate** the limiter rests: timer and byte counter stand still and stages with them, until the next cut.

## As ns3-rdma has it

From ` + "`paper`: `np_window: true`, `stage_before_event: false`, `hyper_at_threshold: true`, `hyper_halves: true`," + `
` + "`extra_fast_recovery: true`, `alpha_before_cut: true`, `rpg_time_reset: 60us`, `rpg_byte_reset: 300MB`" + `.
`

func docs() string {
	var b strings.Builder
	b.WriteString(docsHead)
	var presets []Params
	b.WriteString("## The knobs\n\n| knob | paper | what it does | a bare number is | allowed |")
	for _, name := range Presets() {
		p, _ := Preset(name)
		presets = append(presets, p)
		b.WriteString(" " + name + " |")
	}
	b.WriteString("\n|---|---|---|---|---|" + strings.Repeat("---|", len(presets)) + "\n")
	for _, k := range Knobs() {
		unit := k.Unit
		if unit == "" && k.form == number {
			unit = "itself"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |", k.Name, strings.ReplaceAll(k.Paper, "_", `\_`), strings.ReplaceAll(k.Doc, "_", `\_`), unit, k.Limits())
		for i := range presets {
			fmt.Fprintf(&b, " %s |", k.Get(&presets[i]))
		}
		b.WriteString("\n")
	}
	b.WriteString(docsTail)
	return b.String()
}

// docs/dcqcn.md is what the code says; -update writes it.
func TestDocs(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "dcqcn.md")
	want := docs()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s is not as the code has it (%v): go test ./transport/dcqcn -run TestDocs -update", path, err)
	}
}

// The recipe for ns3-rdma in the document is valid.
func TestDocumentedRecipe(t *testing.T) {
	p := paper()
	_, recipe, _ := strings.Cut(docsTail, "From `paper`: ")
	n := 0
	for part := range strings.SplitSeq(recipe, "`") {
		name, value, ok := strings.Cut(part, ": ")
		if !ok {
			continue
		}
		k, ok := FindKnob(name)
		if !ok {
			t.Fatalf("no knob %q", name)
		}
		if err := k.Set(&p, value); err != nil {
			t.Error(err)
		}
		n++
	}
	if err := p.Validate(); err != nil || n != 8 {
		t.Error(n, err)
	}
}
