// Package nlask asks over netlink and asks again where the answer is not whole: a dump
// during which the objects changed (NLM_F_DUMP_INTR), an interrupted call, a receive
// buffer that ran over. It owns nothing; the packages of diag/source that speak netlink
// call it. It must never ask something that changes the host: an answer may be asked
// for several times.
package nlask

import (
	"errors"
	"syscall"

	"github.com/mdlayher/netlink"
)

// ErrChanging says that the objects changed during every dump.
var ErrChanging = errors.New("the objects changed during every dump")

// tries bounds how often is asked.
const tries = 5

// Conn is the part of a [netlink.Conn] that is used.
type Conn interface {
	Execute(m netlink.Message) ([]netlink.Message, error)
}

// Execute sends a message and returns the answer. After several tries the error is the
// last one, or [ErrChanging].
func Execute(c Conn, m netlink.Message) (msgs []netlink.Message, err error) {
	for range tries {
		msgs, err = c.Execute(m)
		if err == nil && interrupted(msgs) {
			err = ErrChanging
			continue
		}
		if !errors.Is(err, syscall.EINTR) && !errors.Is(err, syscall.ENOBUFS) {
			return msgs, err
		}
	}
	return nil, err
}

func interrupted(msgs []netlink.Message) bool {
	for i := range msgs {
		if msgs[i].Header.Flags&netlink.DumpInterrupted != 0 {
			return true
		}
	}
	return false
}
