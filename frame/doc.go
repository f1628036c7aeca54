// Package frame owns the two shapes in which bytes cross the boundary between
// an adapter and a link: [Rx], what was received in one piece, and [Run], what
// is sent in one piece.
//
// Between an adapter and a simulator the payload may be missing: the frames of
// such a phantom link carry its length instead.
//
// It exists so that package rnic and the link packages need not know each
// other. It holds no bytes of its own: buffers belong to the link and are lent.
package frame
