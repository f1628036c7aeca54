package verbs

import (
	"sync"

	"github.com/verbena-rdma/verbena/ib"
)

// firsts are the queue pairs whose COMM_EST is for the connection manager. Their
// number is that of its connections in the making.
type firsts struct {
	mu      sync.Mutex // below the driver's lock
	waiting map[ib.QPN]func()
	come    []ib.QPN
}

// watch begins or ends watching; wake is called under the driver's lock.
func (f *firsts) watch(qpn ib.QPN, on bool, wake func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !on {
		delete(f.waiting, qpn)
		return
	}
	if f.waiting == nil {
		f.waiting = make(map[ib.QPN]func())
	}
	f.waiting[qpn] = wake
}

// take notes the first message of a queue pair, if it is watched.
func (f *firsts) take(qpn ib.QPN) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	wake := f.waiting[qpn]
	if wake == nil {
		return false
	}
	delete(f.waiting, qpn)
	f.come = append(f.come, qpn)
	wake()
	return true
}

// pop returns one that take has noted.
func (f *firsts) pop() (qpn ib.QPN, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.come) == 0 {
		return 0, false
	}
	qpn = f.come[len(f.come)-1]
	f.come = f.come[:len(f.come)-1]
	return qpn, true
}
