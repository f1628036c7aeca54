package rnic

import "github.com/verbena-rdma/verbena/ib"

// InlineSource returns the bytes that an element of a scatter/gather list
// refers to, or false if its key does not open them for this queue pair. It is
// how Post reads inline data, since the table of regions belongs to the owner.
// The bytes are borrowed for the call.
type InlineSource = func(sge ib.SGE) ([]byte, bool)

// Post adds send work requests to the send queue and returns how many, from
// the first, it has added: all of them, unless there is an error, which is a
// [*PostError]. It copies what it adds. reg serves requests with the Inline
// flag and an SGL; it may be nil otherwise. It does not allocate when all is
// well. Poster.
func (q *QP) Post(wrs []ib.SendWR, reg InlineSource) (n int, err error) {
	return 0, nil
}

// PostRecv adds receive work requests to the receive queue, like Post. Poster.
func (q *QP) PostRecv(wrs []ib.RecvWR) (n int, err error) {
	return 0, nil
}
