package ether

import "fmt"

// Tag is the tag control information of 802.1Q: three bits of priority (PCP),
// one of drop eligibility (DEI), twelve of VLAN.
type Tag uint16

// MakeTag returns a tag; three bits of pcp and twelve of vid are kept.
func MakeTag(pcp uint8, dei bool, vid uint16) Tag {
	return Tag(0).WithPCP(pcp).WithDEI(dei).WithVID(vid)
}

// PCP returns the priority, 0 to 7: the class that PFC pauses.
func (t Tag) PCP() uint8 { return uint8(t >> 13) }

// DEI reports whether the frame may be dropped first.
func (t Tag) DEI() bool { return t&0x1000 != 0 }

// VID returns the VLAN; 0 means that the tag carries a priority only.
func (t Tag) VID() uint16 { return uint16(t) & 0xFFF }

// WithPCP returns t with another priority, of which three bits are kept.
func (t Tag) WithPCP(pcp uint8) Tag { return t&^0xE000 | Tag(pcp&7)<<13 }

// WithDEI returns t with the drop eligibility set or cleared.
func (t Tag) WithDEI(on bool) Tag {
	if on {
		return t | 0x1000
	}
	return t &^ 0x1000
}

// WithVID returns t with another VLAN, of which twelve bits are kept.
func (t Tag) WithVID(vid uint16) Tag { return t&^0xFFF | Tag(vid&0xFFF) }

func (t Tag) String() string {
	s := fmt.Sprintf("vlan %d pcp %d", t.VID(), t.PCP())
	if t.DEI() {
		s += " dei"
	}
	return s
}
