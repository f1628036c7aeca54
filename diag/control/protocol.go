package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Version is that of the protocol. Fields may be added to it; what does not
// understand them ignores them.
const Version = 1

// The bounds.
const (
	MaxRequest = 1 << 10         // bytes of a request, its newline included
	MaxAnswer  = 32 << 20        // bytes of an answer
	MaxServers = 1024            // devices that a client asks
	MaxTotal   = 10 << 20        // bytes of answers that a client passes on with their lists
	Patience   = 2 * time.Second // how long a connection lasts at most
)

// maxValues is how many values those answers may have: what diag/read takes at once,
// with room for the owners that the client adds.
const maxValues = 300_000

// socketPrefix begins the names of sockets, after which come user, process and a
// random part. The leading @ is how Go and /proc write the zero byte of the abstract
// name space.
const socketPrefix = "@verbena/1/"

// request is the line that a client sends.
type request struct {
	Version int `json:"version"`
	Want
}

// Want is what a client wants to know of a device.
type Want struct {
	Resources bool `json:"resources,omitempty"` // the lists of queue pairs and other objects, too
	Counters  bool `json:"counters,omitempty"`  // only what is counted, and what names it
}

// answer is the line that a server sends.
type answer struct {
	Version int              `json:"version"`
	Error   string           `json:"error,omitempty"`
	Opened  time.Time        `json:"opened,omitzero"` // when the device was
	Comm    string           `json:"comm,omitempty"`  // of the process
	Device  *snapshot.Device `json:"device,omitempty"`
}

// read reads an answer as encoding/json does, most of them on a shorter way.
func (a *answer) read(b []byte) error {
	head, rest, ok := bytes.Cut(b, deviceKey)
	if ok && len(head) > 1 && json.Unmarshal(append(bytes.Clone(head), '}'), a) == nil {
		if text, ok := bytes.CutSuffix(rest, []byte{'}'}); ok {
			if d, ok := snapshot.ReadDevice(string(text)); ok {
				a.Device = &d
				return nil
			}
		}
	}
	*a = answer{}
	return json.Unmarshal(b, a)
}

// append appends the line of an answer.
func (a *answer) append(b []byte) ([]byte, error) {
	d := a.Device
	head, err := json.Marshal(&answer{Version: a.Version, Error: a.Error, Opened: a.Opened, Comm: a.Comm})
	if err != nil || d == nil {
		return append(append(b, head...), '\n'), err
	}
	b = append(append(b, head[:len(head)-1]...), deviceKey...)
	b, err = snapshot.AppendDevice(b, d)
	return append(b, '}', '\n'), err
}

// deviceKey stands before the device in an answer.
var deviceKey = []byte(`,"device":`)

// socketName makes the name of a socket.
func socketName(uid, pid int, random uint64) string {
	return fmt.Sprintf("%s%d/%d-%016x", socketPrefix, uid, pid, random)
}

// parseName reads one.
func parseName(name string) (uid, pid int, ok bool) {
	rest, ok := strings.CutPrefix(name, socketPrefix)
	if !ok || len(name) > 100 {
		return 0, 0, false
	}
	user, rest, ok := strings.Cut(rest, "/")
	if !ok {
		return 0, 0, false
	}
	process, random, ok := strings.Cut(rest, "-")
	if !ok || len(random) != 16 {
		return 0, 0, false
	}
	u, err := strconv.ParseUint(user, 10, 32)
	if err != nil {
		return 0, 0, false
	}
	p, err := strconv.ParseUint(process, 10, 31)
	if err != nil {
		return 0, 0, false
	}
	if _, err := strconv.ParseUint(random, 16, 64); err != nil {
		return 0, 0, false
	}
	return int(u), int(p), true
}
