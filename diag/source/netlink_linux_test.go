package source_test

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mdlayher/netlink"

	"github.com/verbena-rdma/verbena/diag/source"
	"github.com/verbena-rdma/verbena/diag/source/dcbnl"
	"github.com/verbena-rdma/verbena/diag/source/nft"
	"github.com/verbena-rdma/verbena/diag/source/nlask"
	"github.com/verbena-rdma/verbena/diag/source/nlask/nlfake"
	"github.com/verbena-rdma/verbena/diag/source/nldev"
	"github.com/verbena-rdma/verbena/diag/source/rtnl"
)

// failed is what a function of a client says.
func failed[T any](_ T, err error) error { return err }

// questions are all that is asked over netlink.
var questions = map[string]func(*nlask.Conn) error{
	"links":      func(c *nlask.Conn) error { return failed(rtnl.New(c).Links()) },
	"addresses":  func(c *nlask.Conn) error { return failed(rtnl.New(c).Addresses()) },
	"routes":     func(c *nlask.Conn) error { return failed(rtnl.New(c).Routes()) },
	"rules":      func(c *nlask.Conn) error { return failed(rtnl.New(c).Rules()) },
	"neighbours": func(c *nlask.Conn) error { return failed(rtnl.New(c).Neighbours()) },
	"devices":    func(c *nlask.Conn) error { return failed(rdma(c).Devices()) },
	"ports":      func(c *nlask.Conn) error { return failed(rdma(c).Ports(0)) },
	"system":     func(c *nlask.Conn) error { return failed(rdma(c).System()) },
	"summary":    func(c *nlask.Conn) error { return failed(rdma(c).Summary()) },
	"statistics": func(c *nlask.Conn) error { return failed(rdma(c).Statistics(0, 1)) },
	"modes":      func(c *nlask.Conn) error { return failed(rdma(c).StatMode(0, 1)) },
	"QPs":        func(c *nlask.Conn) error { return failed(rdma(c).QPs(0)) },
	"CQs":        func(c *nlask.Conn) error { return failed(rdma(c).CQs(0)) },
	"MRs":        func(c *nlask.Conn) error { return failed(rdma(c).MRs(0)) },
	"PDs":        func(c *nlask.Conn) error { return failed(rdma(c).PDs(0)) },
	"CM IDs":     func(c *nlask.Conn) error { return failed(rdma(c).CMIDs(0)) },
	"SRQs":       func(c *nlask.Conn) error { return failed(rdma(c).SRQs(0)) },
	"contexts":   func(c *nlask.Conn) error { return failed(rdma(c).Contexts(0)) },
	"DCB":        func(c *nlask.Conn) error { return failed(dcbnl.New(c).Get("eth0")) },
	"nftables":   func(c *nlask.Conn) error { return failed(nft.ReadFrom(c)) },
}

func rdma(c *nlask.Conn) *nldev.Client { return nldev.New(c, func(int) string { return "" }) }

// TestEveryClientIsBounded lets a kernel answer every question in every wrong way: each
// client says what was wrong or which limit was reached, and asks again where that helps.
func TestEveryClientIsBounded(t *testing.T) {
	message := func(q netlink.Message, h netlink.Header) nlfake.Reply {
		h.Type, h.Flags, h.Sequence = q.Header.Type, h.Flags|netlink.Multi, h.Sequence+q.Header.Sequence
		return nlfake.Reply{Data: nlfake.Message(h, make([]byte, 64))}
	}
	type next = func() (nlfake.Reply, bool)
	endless := func(r nlfake.Reply) next { return func() (nlfake.Reply, bool) { return r, true } }
	for name, tc := range map[string]struct {
		answer func(q netlink.Message) next
		want   string // a part of the error
		errno  error
		tries  int
	}{
		"endless":            {func(q netlink.Message) next { return endless(message(q, netlink.Header{})) }, "more than the limit of 500 messages", nil, 1},
		"endless, other":     {func(q netlink.Message) next { return endless(message(q, netlink.Header{Sequence: 5})) }, "more than the limit of 500 messages", nil, 1},
		"huge":               {func(q netlink.Message) next { return endless(nlfake.Reply{Data: make([]byte, 70_000), Sender: 4}) }, "longer than the limit of 1048576 bytes", nil, 1},
		"silent":             {func(netlink.Message) next { return nlfake.List() }, "no whole answer within 1m0s", nil, 1},
		"ends in the middle": {func(q netlink.Message) next { return nlfake.List(message(q, netlink.Header{})) }, "no whole answer within 1m0s", nil, 1},
		"cut": {func(q netlink.Message) next {
			return nlfake.List(nlfake.Reply{Data: message(q, netlink.Header{}).Data[:40]})
		}, "says that it has 80 bytes, of 40", nil, 1},
		"cut head": {func(q netlink.Message) next {
			return nlfake.List(nlfake.Reply{Data: message(q, netlink.Header{}).Data[:9]})
		}, "no message", nil, 1},
		"wrong length": {func(q netlink.Message) next { return nlfake.List(message(q, netlink.Header{Length: 3})) }, "says that it has 3 bytes", nil, 1},
		"error in between": {func(q netlink.Message) next {
			return nlfake.List(message(q, netlink.Header{}), nlfake.Errno(q, int(syscall.EIO)))
		}, "", syscall.EIO, 1},
		"EPERM": {func(q netlink.Message) next { return nlfake.List(nlfake.Errno(q, int(syscall.EPERM))) }, "", fs.ErrPermission, 1},
		"ENOBUFS": {func(q netlink.Message) next {
			return nlfake.List(nlfake.Reply{Err: os.NewSyscallError("recvfrom", syscall.ENOBUFS)})
		}, "", syscall.ENOBUFS, 5},
		"EINTR": {func(netlink.Message) next { return nlfake.List(nlfake.Reply{Err: syscall.EINTR}) }, "", syscall.EINTR, 5},
		"changes always": {func(q netlink.Message) next {
			return nlfake.List(nlfake.Reply{Data: nlfake.Message(netlink.Header{Type: netlink.Done, Flags: netlink.Multi | netlink.DumpInterrupted, Sequence: q.Header.Sequence}, make([]byte, 4))})
		}, "", nlask.ErrChanging, 5},
	} {
		for what, ask := range questions {
			k := &nlfake.Kernel{Answer: func(_ int, q netlink.Message) next { return tc.answer(q) }}
			err := ask(k.Dial(nlask.Limits{Messages: 500, Bytes: 1 << 20, Time: time.Minute}))
			if err == nil || !strings.Contains(err.Error(), tc.want) || tc.errno != nil && !errors.Is(err, tc.errno) {
				t.Errorf("%s, %s: %v", what, name, err)
			}
			// DCB and counters' modes are two questions, and a ruleset that changes is
			// read again from its beginning.
			if k.Asked < tc.tries || k.Asked > 5*tc.tries {
				t.Errorf("%s, %s: asked %d times", what, name, k.Asked)
			}
			if reason := source.Failed(err); strings.ContainsAny(reason.Error(), "\n\x1b") || len(reason.Error()) > 300 {
				t.Errorf("%s, %s: %q", what, name, reason)
			}
		}
	}
}

// TestOneWayToAsk holds that nothing below diag/source opens a netlink socket of its own:
// only nlask bounds what comes.
func TestOneWayToAsk(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "nlask/") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			if i.Path.Value == `"github.com/google/nftables"` || i.Path.Value == `"github.com/mdlayher/socket"` {
				t.Errorf("%s imports %s", path, i.Path.Value)
			}
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, w := range []string{"netlink.Dial(", "AF_NETLINK"} {
			if strings.Contains(string(b), w) {
				t.Errorf("%s has %s: use nlask", path, w)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
