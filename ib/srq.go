package ib

// SRQAttrMask names the attributes that a modify call of a shared receive queue
// carries.
type SRQAttrMask uint32

// The attributes, with libibverbs' numbers (ibv_srq_attr_mask).
const (
	SRQMaxWR SRQAttrMask = 1 << 0
	SRQLimit SRQAttrMask = 1 << 1
)

// SRQAttr is the argument of a modify call of a shared receive queue and the
// answer of a query. Mask says which fields are meant; a query fills them all.
type SRQAttr struct {
	Mask   SRQAttrMask
	MaxWR  int // receives that may wait
	MaxSGE int // elements of a receive; fixed
	Limit  int // raise an event when fewer receives wait; 0: none
}
