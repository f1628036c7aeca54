package faultplan

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link/fault"
)

// words are names and their values, in the order in which messages list them.
type words[T comparable] []struct {
	name  string
	value T
}

func (w words[T]) find(name string) (T, bool) {
	for _, x := range w {
		if x.name == name {
			return x.value, true
		}
	}
	var none T
	return none, false
}

func (w words[T]) name(v T) string {
	for _, x := range w {
		if x.value == v {
			return x.name
		}
	}
	return fmt.Sprint(v)
}

func (w words[T]) names() []string {
	var n []string
	for _, x := range w {
		n = append(n, x.name)
	}
	return n
}

func (w words[T]) list() string { return strings.Join(w.names(), ", ") }

var actionNames = words[Action]{
	{"lose", Lose},
	{"delay", Delay},
	{"duplicate", Duplicate},
	{"reorder", Reorder},
	{"corrupt", Corrupt},
	{"mark", Mark},
	{"partition", Partition},
	{"kill", Kill},
	{"fail", Fail},
}

func (a Action) String() string { return actionNames.name(a) }

var callNames = words[Call]{
	{"open", Open},
	{"alloc_pd", AllocPD},
	{"reg_mr", RegMR},
	{"create_cq", CreateCQ},
	{"create_qp", CreateQP},
	{"create_srq", CreateSRQ},
	{"create_ah", CreateAH},
	{"modify_qp", ModifyQP},
	{"post_send", PostSend},
	{"post_recv", PostRecv},
	{"poll", Poll},
}

func (c Call) String() string {
	for _, x := range callNames {
		if x.value == c {
			return x.name
		}
	}
	return fmt.Sprintf("call %d", uint8(c))
}

var directionNames = words[Direction]{{"in", In}, {"out", Out}, {"both", Both}}

var kindNames = words[fault.Kind]{
	{"send", fault.Send},
	{"write", fault.Write},
	{"read", fault.ReadRequest},
	{"read-request", fault.ReadRequest},
	{"read-response", fault.ReadResponse},
	{"atomic", fault.Atomic},
	{"atomic-ack", fault.AtomicAck},
	{"ack", fault.Ack},
	{"rnr-nak", fault.RNRNak},
	{"nak", fault.Nak},
	{"cnp", fault.CNP},
}

var posNames = words[fault.Pos]{{"first", fault.First}, {"middle", fault.Middle}, {"last", fault.Last}, {"only", fault.Only}}

// errnoNames are those that every system has.
var errnoNames = words[syscall.Errno]{
	{"EPERM", syscall.EPERM},
	{"ENOENT", syscall.ENOENT},
	{"EINTR", syscall.EINTR},
	{"EIO", syscall.EIO},
	{"ENXIO", syscall.ENXIO},
	{"EBADF", syscall.EBADF},
	{"EAGAIN", syscall.EAGAIN},
	{"ENOMEM", syscall.ENOMEM},
	{"EACCES", syscall.EACCES},
	{"EFAULT", syscall.EFAULT},
	{"EBUSY", syscall.EBUSY},
	{"EEXIST", syscall.EEXIST},
	{"ENODEV", syscall.ENODEV},
	{"EINVAL", syscall.EINVAL},
	{"EMFILE", syscall.EMFILE},
	{"ENOSPC", syscall.ENOSPC},
	{"ENOSYS", syscall.ENOSYS},
	{"EOPNOTSUPP", syscall.EOPNOTSUPP},
	{"EADDRINUSE", syscall.EADDRINUSE},
	{"EADDRNOTAVAIL", syscall.EADDRNOTAVAIL},
	{"ENETDOWN", syscall.ENETDOWN},
	{"ENETUNREACH", syscall.ENETUNREACH},
	{"ECONNRESET", syscall.ECONNRESET},
	{"ENOBUFS", syscall.ENOBUFS},
	{"ETIMEDOUT", syscall.ETIMEDOUT},
	{"ECONNREFUSED", syscall.ECONNREFUSED},
	{"EHOSTUNREACH", syscall.EHOSTUNREACH},
}

// statusNames are all completion statuses but SUCCESS.
var statusNames = func() (w words[ib.WCStatus]) {
	for s := ib.Success + 1; s <= ib.GeneralErr; s++ {
		w = append(w, struct {
			name  string
			value ib.WCStatus
		}{s.String(), s})
	}
	return w
}()
