package nlask

import (
	"errors"
	"syscall"
	"testing"

	"github.com/mdlayher/netlink"
)

// answers are those of a kernel, one after the other; the last one stays.
type answers []struct {
	flags netlink.HeaderFlags
	err   error
}

type kernel struct {
	answers answers
	asked   int
}

func (k *kernel) Execute(netlink.Message) ([]netlink.Message, error) {
	a := k.answers[min(k.asked, len(k.answers)-1)]
	k.asked++
	if a.err != nil {
		return nil, a.err
	}
	return []netlink.Message{{}, {Header: netlink.Header{Flags: a.flags}, Data: []byte{1}}}, nil
}

func TestAskedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		answers answers
		asked   int
		want    error
	}{
		"whole":             {answers{{}}, 1, nil},
		"changed once":      {answers{{flags: netlink.DumpInterrupted}, {}}, 2, nil},
		"changes always":    {answers{{flags: netlink.DumpInterrupted}}, tries, ErrChanging},
		"interrupted":       {answers{{err: syscall.EINTR}, {err: &netlink.OpError{Op: "receive", Err: syscall.EINTR}}, {}}, 3, nil},
		"overrun":           {answers{{err: syscall.ENOBUFS}, {}}, 2, nil},
		"overrun always":    {answers{{err: syscall.ENOBUFS}}, tries, syscall.ENOBUFS},
		"refused":           {answers{{err: syscall.EPERM}, {}}, 1, syscall.EPERM},
		"overrun, then not": {answers{{err: syscall.ENOBUFS}, {err: syscall.ENODEV}}, 2, syscall.ENODEV},
	} {
		k := &kernel{answers: tc.answers}
		msgs, err := Execute(k, netlink.Message{})
		if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) || k.asked != tc.asked || err == nil && len(msgs) != 2 {
			t.Errorf("%s: asked %d times, %d messages, %v", name, k.asked, len(msgs), err)
		}
	}
}
