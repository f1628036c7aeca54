package control

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// DefaultTimeout is how long a client waits for all answers together.
const DefaultTimeout = time.Second

// Query is what a client asks.
type Query struct {
	// Resources asks for the lists of queue pairs and other objects, too.
	Resources bool
	// Counters leaves out what does not change: attributes, GIDs and partitions. A process
	// of an older version tells them all the same.
	Counters bool
	// Timeout is for all answers together; 0 means DefaultTimeout. A process that
	// is stopped takes all of it, others a few milliseconds.
	Timeout time.Duration
}

// Devices asks every process of this user in the network namespace of the calling
// thread for its devices. Names are made unique: of several devices of one name the
// one that was opened first keeps it, others get the number of their process behind
// it, vrb_lo-4711, and if that is not enough a count, vrb_lo-4711-2.
//
// Strings have no control characters, whatever a process says.
//
// A process that cannot be asked gives a device without a name, whose Attr says why.
// The error matches fs.ErrNotExist where there are no such sockets at all.
func Devices(q Query) ([]snapshot.Device, error) {
	if !supported {
		return nil, fs.ErrNotExist
	}
	names, left, err := sockets(os.Geteuid())
	if err != nil {
		return nil, err
	}
	timeout := q.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	until := time.Now().Add(timeout)
	line, err := json.Marshal(request{Version: Version, Want: Want{q.Resources, q.Counters}})
	if err != nil {
		return nil, err
	}
	line = append(line, '\n')

	all := make([]told, len(names))
	var wait sync.WaitGroup
	exchange(names, line, until, func(i int, r reply) {
		if len(r.answer) <= atOnce {
			all[i] = r.read()
			return
		}
		r.answer = bytes.Clone(r.answer)
		wait.Go(func() { all[i] = r.read() })
	})
	wait.Wait()
	comms := map[int]string{} // most processes have several devices
	for i := range all {
		if d := &all[i].device; d.PID != 0 {
			comm, known := comms[d.PID]
			if !known {
				comm = commOf(d.PID, d.Comm)
				comms[d.PID] = comm
			}
			d.Comm = comm
			owner(d)
		}
	}
	out := sorted(all)
	if left > 0 {
		out = append(out, failed(fmt.Sprintf("%d more devices are not asked: %d are the limit", left, MaxServers)))
	}
	return out, nil
}

// asked is how many processes are asked at a time.
const asked = 256

// atOnce is the length of answers, in bytes, that are read while others are awaited.
const atOnce = 256 << 10

// maxReceived is the bytes of all answers together.
const maxReceived = 2 * MaxAnswer

// told is what a socket said.
type told struct {
	opened time.Time
	device snapshot.Device
	bytes  int
	values int
	ok     bool // there is a device, or the reason why not
}

// failed is a process that has not answered.
func failed(why string) snapshot.Device {
	return snapshot.Device{Kind: snapshot.Verbena, Attr: snapshot.Unreadable[snapshot.Attr](why)}
}

// reply is what came of asking one socket: an answer, which is borrowed, or why there is
// none. The zero reply is of a socket that was somebody else's, or whose process ended.
type reply struct {
	pid    int
	answer []byte
	why    string
}

// read reads an answer.
func (r *reply) read() told {
	fail := func(format string, args ...any) told {
		return told{ok: true, device: failed(fmt.Sprintf("process %d: ", r.pid) + fmt.Sprintf(format, args...))}
	}
	switch {
	case r.why != "":
		return fail("%s", r.why)
	case len(r.answer) == 0:
		return told{}
	}
	var a answer
	switch err := a.read(snapshot.CleanJSON(bytes.TrimSpace(r.answer), false)); {
	case err != nil:
		return fail("the answer is no JSON of version %d", Version)
	case a.Error != "":
		return fail("%.200s", a.Error)
	case a.Device == nil || a.Device.Name == "":
		return fail("the answer of version %d names no device", a.Version)
	}
	d := *a.Device
	d.Kind, d.PID, d.Comm = snapshot.Verbena, r.pid, a.Comm
	return told{ok: true, opened: a.Opened, device: d, bytes: len(r.answer), values: bytes.Count(r.answer, []byte(","))}
}

// commOf names a process: by proc where that can be, else as it does itself.
func commOf(pid int, said string) string {
	if b, err := readFile("/proc/" + strconv.Itoa(pid) + "/comm"); err == nil {
		return snapshot.CleanText(strings.TrimSuffix(string(b), "\n"))
	}
	return said
}

// owner says of all objects whose they are.
func owner(d *snapshot.Device) {
	pid := snapshot.Known(d.PID)
	qps, _ := d.QPs.Get()
	for i := range qps {
		qps[i].PID, qps[i].Comm = pid, d.Comm
	}
	cqs, _ := d.CQs.Get()
	for i := range cqs {
		cqs[i].PID, cqs[i].Comm = pid, d.Comm
	}
	mrs, _ := d.MRs.Get()
	for i := range mrs {
		mrs[i].PID, mrs[i].Comm = pid, d.Comm
	}
	pds, _ := d.PDs.Get()
	for i := range pds {
		pds[i].PID, pds[i].Comm = pid, d.Comm
	}
	srqs, _ := d.SRQs.Get()
	for i := range srqs {
		srqs[i].PID, srqs[i].Comm = pid, d.Comm
	}
	ids, _ := d.CMIDs.Get()
	for i := range ids {
		ids[i].PID, ids[i].Comm = pid, d.Comm
	}
	ctxs, _ := d.Contexts.Get()
	for i := range ctxs {
		ctxs[i].PID, ctxs[i].Comm = pid, d.Comm
	}
}

// sorted puts devices into the order in which they were opened, makes their names
// unique and keeps the whole within MaxTotal and maxValues.
func sorted(all []told) []snapshot.Device {
	all = slices.DeleteFunc(all, func(t told) bool { return !t.ok })
	slices.SortStableFunc(all, func(a, b told) int {
		if c := a.opened.Compare(b.opened); c != 0 {
			return c
		}
		return a.device.PID - b.device.PID
	})
	names := map[string]bool{}
	size, values := 0, 0
	out := []snapshot.Device{}
	for _, t := range all {
		d := t.device
		if d.Name != "" {
			d.Name = unique(names, d.Name, d.PID)
		}
		if size+t.bytes > MaxTotal || values+t.values > maxValues {
			withoutLists(&d, "the lists of all processes together are longer than the limit")
		} else {
			size, values = size+t.bytes, values+t.values
		}
		out = append(out, d)
	}
	return out
}

// unique returns a name that is not in names, and puts it there.
func unique(names map[string]bool, name string, pid int) string {
	try := name
	for n := 1; names[try]; n++ {
		try = fmt.Sprintf("%s-%d", name, pid)
		if n > 1 {
			try += "-" + strconv.Itoa(n)
		}
	}
	names[try] = true
	return try
}

// withoutLists takes the lists away. How many objects there are stays.
func withoutLists(d *snapshot.Device, why string) {
	d.QPs = snapshot.Unreadable[[]snapshot.QP](why)
	d.CQs = snapshot.Unreadable[[]snapshot.CQ](why)
	d.MRs = snapshot.Unreadable[[]snapshot.MR](why)
	d.PDs = snapshot.Unreadable[[]snapshot.PD](why)
	d.SRQs = snapshot.Unreadable[[]snapshot.SRQ](why)
	d.CMIDs = snapshot.Unreadable[[]snapshot.CMID](why)
	d.Contexts = snapshot.Unreadable[[]snapshot.Context](why)
}

// sockets lists the control sockets of a user, and how many are left out.
func sockets(uid int) (names []string, left int, err error) {
	b, err := readFile(table)
	if err != nil {
		return nil, 0, err
	}
	return listed(bytes.NewReader(b), uid)
}

// listed reads a table such as /proc/net/unix: seven columns and a name. Those that
// listen have bit 16 of the flags (__SO_ACCEPTCON).
func listed(r io.Reader, uid int) (names []string, left int, err error) {
	const accepts = 1 << 16
	seen := map[string]bool{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(socketPrefix)) {
			continue
		}
		f := strings.Fields(lines.Text())
		if len(f) != 8 || seen[f[7]] {
			continue
		}
		flags, err := strconv.ParseUint(f[3], 16, 64)
		if user, _, ok := parseName(f[7]); err != nil || flags&accepts == 0 || !ok || user != uid {
			continue
		}
		seen[f[7]] = true
		if len(names) == MaxServers {
			left++
			continue
		}
		names = append(names, f[7])
	}
	if err := lines.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return nil, 0, fmt.Errorf("list Unix sockets: %w", err)
	}
	return names, left, nil
}
