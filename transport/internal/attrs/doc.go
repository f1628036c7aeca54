// Package attrs owns the attributes of a queue pair that its protocol engine
// remembers: those of [ib.QPAttr] without path, port and rate, which are the
// adapter's, in a third of the room. It must never judge one: the adapter has.
// The engines of rc, uc and ud call it.
package attrs
