package control

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// The table is the kernel's: addresses and fields as Linux 6 prints them.
func TestTableOfSockets(t *testing.T) {
	const head = "Num       RefCount Protocol Flags    Type St Inode Path\n"
	row := func(flags, name string) string {
		return "0000000000000000: 00000002 00000000 " + flags + " 0001 01 12345 " + name + "\n"
	}
	mine := "@verbena/1/1000/77-0123456789abcdef"
	table := head +
		row("00010000", mine) + row("00000000", mine) + row("00010000", mine) + // listening, an accepted end, twice
		row("00010000", "@verbena/1/1001/77-0123456789abcdef") + // somebody else's
		row("00010000", "@verbena/2/1000/77-0123456789abcdef") + // another protocol
		row("00010000", "@verbena/1/1000/77") + row("00010000", "@verbena/1/1000/x-0123456789abcdef") +
		row("00010000", "@verbena/1/-1000/7-0123456789abcdef") + row("00010000", "@verbena/1/1000/7-0123456789abcdeg") +
		row("00010000", "/run/@verbena/1/1000/77-0123456789abcdef") +
		"0000000000000000: 00000002 00000000 00010000 0001 01 12346\n" +
		"@verbena/1/ nonsense\n"
	names, left, err := listed(strings.NewReader(table), 1000)
	if err != nil || left != 0 || len(names) != 1 || names[0] != mine {
		t.Errorf("%q, %d, %v", names, left, err)
	}
	var many strings.Builder
	for i := range MaxServers + 5 {
		many.WriteString(row("00010000", socketName(1000, i+1, uint64(i))))
	}
	if names, left, err = listed(strings.NewReader(many.String()), 1000); err != nil || len(names) != MaxServers || left != 5 {
		t.Errorf("%d names, %d left out, %v", len(names), left, err)
	}
}

func TestNamesAreUniqueAndStay(t *testing.T) {
	at := time.Unix(1000, 0)
	say := func(after time.Duration, pid int, name string) told {
		return told{ok: true, opened: at.Add(after), device: snapshot.Device{Name: name, PID: pid}}
	}
	names := func(all ...told) string {
		var s []string
		for _, d := range sorted(all) {
			s = append(s, d.Name)
		}
		return strings.Join(s, " ")
	}
	first, second, third := say(2, 9, "vrb_lo"), say(3, 5, "vrb_lo"), say(4, 5, "vrb_lo")
	if got := names(first, second); got != "vrb_lo vrb_lo-5" {
		t.Error(got)
	}
	// A later one changes no other's name.
	if got := names(third, told{}, second, first); got != "vrb_lo vrb_lo-5 vrb_lo-5-2" {
		t.Error(got)
	}
	if got := names(say(1, 1, "vrb_lo-5"), first, second); got != "vrb_lo-5 vrb_lo vrb_lo-5-2" {
		t.Error(got)
	}
}

// Lists that are too long together cost lists, not devices.
func TestTotalIsBounded(t *testing.T) {
	var all []told
	for i := range 5 {
		all = append(all, told{
			ok: true, opened: time.Unix(int64(i), 0), bytes: MaxTotal / 3,
			device: snapshot.Device{Name: fmt.Sprint("d", i), QPs: snapshot.Known([]snapshot.QP{}), Resources: map[string]uint64{"qp": 7}},
		})
	}
	listed := 0
	for _, d := range sorted(all) {
		if d.QPs.IsKnown() {
			listed++
		} else if d.QPs.Why() == "" || d.Resources["qp"] != 7 {
			t.Errorf("%+v", d)
		}
	}
	if listed != 3 {
		t.Errorf("%d of 5 have lists, want 3", listed)
	}
	all = all[:2]
	all[0].bytes, all[0].values, all[1].bytes, all[1].values = 1, maxValues, 1, 1
	if got := sorted(all); !got[0].QPs.IsKnown() || got[1].QPs.IsKnown() {
		t.Error("values are not bounded")
	}
}
