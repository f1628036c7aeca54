// Package fault is a link around a link that treats packets badly on purpose:
// it drops, duplicates, delays, reorders, corrupts them or marks congestion, by
// rules ("drop the 3rd READ response of QP 0x11") and by chance, from a seed.
//
//	rules, err := fault.Parse("drop 3rd read-response qp=0x11; loss 1%; delay 1ms 5%")
//	l, err := fault.New(inner, fault.Config{Rules: rules, Seed: 7})
//
// Links of whole Ethernet frames too: rules see the packets in them (ether.go).
//
// Rules work on what comes in unless they say out. Each rule is a stage that a
// packet passes, in the order of the list; a packet that one stage drops, the
// next does not see. Each rule has its own random numbers, so that what it does
// depends on the seed, on its place in the list, and on the packets that it
// looked at, and on nothing else. Time is what Recv and Commit are told.
//
// Merged pieces and runs are cut only where something happens. A packet that
// comes in keeps its bytes, and a receiver that cannot see its IPv4
// Identification has to find it as it does for any peer. A packet that goes out
// from another place of a run gets another Identification, so its ICRC is
// moved along (link/internal/ident): every fault but Corrupt leaves ICRCs right.
//
// What passes untouched is not copied; what is held is.
//
// Read rule.go (what rules are), parse.go (their text), stage.go (a rule at
// work), fault.go (the link), in.go, out.go, ether.go.
package fault
