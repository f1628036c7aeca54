package verbs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/verbs/faultplan"
)

// FaultsEnv names the environment variable with the file of a fault plan for
// every device that is opened without one of its own. What was injected is
// printed to standard error when the device closes.
const FaultsEnv = "VERBENA_FAULTS"

// ErrInjected matches the errors that a fault plan made a call return.
var ErrInjected = faultplan.ErrInjected

// faults is a plan at work on a device. Where there is none, the device has nil.
type faults struct {
	*faultplan.Injector
	dev *Device
	out io.Writer // gets the report; may be nil

	mu     sync.Mutex
	qps    map[ib.QPN]*QP
	timers []*time.Timer
	wg     sync.WaitGroup // kills under way or to come
}

// openFaults attaches the plan of the configuration, or that of the environment,
// to a device that is about to be opened. It returns nil where there is none.
func openFaults(cfg *Config, at place) (*faults, error) {
	plan, out := cfg.Faults, cfg.FaultReport
	if plan == nil {
		path := os.Getenv(FaultsEnv)
		if path == "" {
			return nil, nil
		}
		var err error
		if plan, err = faultplan.Load(path); err != nil {
			return nil, fmt.Errorf("%s: %w", FaultsEnv, err)
		}
		if out == nil {
			out = os.Stderr
		}
	}
	in, err := faultplan.Attach(plan, at.name, cfg.Addr)
	if err != nil {
		return nil, err
	}
	f := &faults{Injector: in, out: out, qps: make(map[ib.QPN]*QP)}
	if err := f.control(faultplan.Open); err != nil {
		return nil, err
	}
	return f, nil
}

// wrap puts the plan's rules about packets around a link.
func (f *faults) wrap(l link.Link) (link.Link, error) {
	if f == nil {
		return l, nil
	}
	return f.Injector.Wrap(l)
}

// begin starts what happens at an instant.
func (f *faults) begin(d *Device) {
	if f == nil {
		return
	}
	f.dev = d
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.Timers() {
		f.wg.Add(1)
		f.timers = append(f.timers, time.AfterFunc(t.After, func() {
			defer f.wg.Done()
			f.strike(&t)
		}))
	}
}

// strike moves to Error the queue pairs that a kill is for.
func (f *faults) strike(t *faultplan.Timer) {
	f.mu.Lock()
	var hit []*QP
	for n, q := range f.qps {
		if t.Strike(n) {
			hit = append(hit, q)
		}
	}
	f.mu.Unlock()
	for _, q := range hit {
		q.killed()
	}
}

// end stops what would still happen, waits for what does, and writes the report.
func (f *faults) end() {
	if f == nil {
		return
	}
	f.mu.Lock()
	for _, t := range f.timers {
		if t.Stop() {
			f.wg.Done()
		}
	}
	f.timers = nil
	f.mu.Unlock()
	f.wg.Wait()
	if f.out != nil {
		r := f.Report()
		fmt.Fprintf(f.out, "faults injected into %v by %s", f.dev, r.String())
	}
}

// Faults returns what the device's fault plan has done so far; ok is false where
// the device has no plan.
func (d *Device) Faults() (r faultplan.Report, ok bool) {
	if d.faults == nil {
		return r, false
	}
	return d.faults.Report(), true
}

// control asks the plan about a control call that is about no queue pair. f may
// be nil, as for all that follow.
func (f *faults) control(c faultplan.Call) error {
	if f == nil || !f.Asks(c) {
		return nil
	}
	h := f.Call(c, 0, faultplan.Op{})
	clock.Wait(h.Delay)
	return controlError(h.Err)
}

// controlError gives an injected error the kind by which a program knows it.
func controlError(err error) error {
	if err == nil {
		return nil
	}
	return &injectedError{err, kindOf(err, ErrLimit)}
}

// injectedError is an injected error that also matches one of this package's.
type injectedError struct {
	error
	kind error
}

func (e *injectedError) Unwrap() []error {
	if e.kind == nil {
		return []error{e.error}
	}
	return []error{e.error, e.kind}
}

// kindOf returns the error of this package that means the same as an errno, with
// ENOMEM meaning full, or nil.
func kindOf(err, full error) error {
	var e *faultplan.CallError
	if !errors.As(err, &e) {
		return nil
	}
	switch e.Errno {
	case syscall.ENOMEM:
		return full
	case syscall.EINVAL:
		return ErrInvalid
	case syscall.EBUSY:
		return ErrBusy
	case syscall.EOPNOTSUPP:
		return ErrUnsupported
	case syscall.ENODEV:
		return ErrNoDevice
	case syscall.EHOSTUNREACH, syscall.ENETUNREACH:
		return ErrPath
	}
	return nil
}

// created notes a queue pair.
func (f *faults) created(q *QP) {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.qps[q.Num()] = q
	f.mu.Unlock()
	f.Created(q.Num())
}

// closed forgets it.
func (f *faults) closed(q *QP) {
	if f == nil {
		return
	}
	f.mu.Lock()
	delete(f.qps, q.Num())
	f.mu.Unlock()
}

// modify asks the plan about a modify of a queue pair; kill says that it goes to
// Error after it.
func (f *faults) modify(q *QP) (kill bool, err error) {
	if f == nil || !f.Asks(faultplan.ModifyQP) {
		return false, nil
	}
	h := f.Call(faultplan.ModifyQP, q.Num(), faultplan.Op{})
	clock.Wait(h.Delay)
	return h.Kill, controlError(h.Err)
}

// posts says how many of n work requests are to be posted, what is the matter
// with the next one, and whether the queue pair goes to Error after that.
func (f *faults) posts(c faultplan.Call, q ib.QPN, srq uint32, n int, op func(i int) faultplan.Op) (good int, kill bool, err error) {
	for i := range n {
		h := f.Call(c, q, op(i))
		clock.Wait(h.Delay)
		if h.Err != nil {
			return i, kill, &PostError{
				QPN: q, SRQ: srq, Recv: c == faultplan.PostRecv, Index: i, Attr: "the work request", Value: "refused",
				Err: &injectedError{h.Err, kindOf(h.Err, ErrQueueFull)},
			}
		}
		if h.Kill {
			return i + 1, true, nil
		}
	}
	return n, false, nil
}

// postKinds are the kinds of packets that operations make.
var postKinds = map[ib.WROp]fault.Kind{
	ib.Send: fault.Send, ib.SendImm: fault.Send, ib.SendInv: fault.Send, ib.Write: fault.Write, ib.WriteImm: fault.Write,
	ib.Read: fault.ReadRequest, ib.CompareSwap: fault.Atomic, ib.FetchAdd: fault.Atomic,
}

// doneKinds are those of completions.
var doneKinds = map[ib.WCOp]fault.Kind{
	ib.WCSend: fault.Send, ib.WCWrite: fault.Write, ib.WCRead: fault.ReadRequest, ib.WCCompareSwap: fault.Atomic, ib.WCFetchAdd: fault.Atomic,
}

// polled does to completions what the plan says.
func (f *faults) polled(wcs []ib.WC) {
	for i := range wcs {
		wc := &wcs[i]
		h := f.Call(faultplan.Poll, wc.QPN, faultplan.Op{Kind: doneKinds[wc.Op], Recv: wc.Op&ib.WCRecv != 0})
		clock.Wait(h.Delay)
		if h.Status != ib.Success {
			wc.Status = h.Status
		}
		if h.Kill {
			f.mu.Lock()
			q := f.qps[wc.QPN]
			f.mu.Unlock()
			if q != nil {
				q.killed()
			}
		}
	}
}

// killed moves the queue pair to Error, from whatever state but Reset.
func (q *QP) killed() {
	d := q.pd.dev
	_ = d.do("kill QP", func(now clock.Time) error {
		if q.dead.Load() || q.qp.State() == ib.Reset {
			return nil
		}
		return q.shard.adapter.ModifyQP(now, q.qp, &ib.QPAttr{Mask: ib.AttrState, State: ib.Error})
	})
}

// postFaulty is PostSendBatch under a plan.
func (q *QP) postFaulty(wrs []ib.SendWR) (int, error) {
	good, kill, err := q.pd.dev.faults.posts(faultplan.PostSend, q.Num(), 0, len(wrs), func(i int) faultplan.Op {
		return faultplan.Op{Kind: postKinds[wrs[i].Op]}
	})
	return afterFaults(q, good, len(wrs), kill, err, func() (int, error) { return q.postSend(wrs[:good]) })
}

// recvFaulty is PostRecvBatch under a plan.
func (q *QP) recvFaulty(wrs []ib.RecvWR) (int, error) {
	good, kill, err := q.pd.dev.faults.posts(faultplan.PostRecv, q.Num(), 0, len(wrs), func(int) faultplan.Op { return faultplan.Op{} })
	return afterFaults(q, good, len(wrs), kill, err, func() (int, error) { return q.postRecv(wrs[:good]) })
}

// afterFaults posts what is good and does what comes after it. A batch in which
// the queue pair is killed goes on after that, into the flush.
func afterFaults(q *QP, good, all int, kill bool, injected error, post func() (int, error)) (int, error) {
	n, err := post()
	if kill {
		q.killed()
	}
	if err != nil || n < good {
		return n, err
	}
	if injected == nil && n < all {
		injected = &PostError{QPN: q.Num(), Index: n, Attr: "state", Value: ib.Error.String() + " by the fault plan", Err: ErrState}
	}
	return n, injected
}

// postFaulty is PostRecvBatch of a shared receive queue under a plan.
func (s *SRQ) postFaulty(wrs []ib.RecvWR) (int, error) {
	good, _, err := s.pd.dev.faults.posts(faultplan.PostRecv, 0, s.Number(), len(wrs), func(int) faultplan.Op { return faultplan.Op{} })
	n, perr := s.postRecv(wrs[:good])
	if perr != nil {
		err = perr
	}
	return n, err
}
