package source

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// LiveConfig says where this host is read; the zero LiveConfig is the host itself.
type LiveConfig struct {
	SysfsRoot string // instead of /sys
	ProcRoot  string // instead of /proc
	DevRoot   string // instead of /dev
	App       AppConfig
	// Extra are answers to further queries, such as QueryVerbena, asked anew each time.
	// Their strings have no control characters.
	Extra map[string]func() (any, error)
}

// AppConfig names the program that the application part of a snapshot is about.
type AppConfig struct {
	PID  int      // process, 0 for none
	Name string   // or the processes of this name, as /proc/<pid>/comm has it
	Log  []string // lines that it printed, as [Lines] cuts them
}

// Live is this host, in the network namespace of the thread that first asks. It may be
// used by several goroutines. Only Linux has one.
type Live struct {
	cfg            LiveConfig
	sys, proc, dev *tree
	threads        bool // proc has the network namespace of each thread

	mu      sync.Mutex
	clients clients
	index   map[string]int // RDMA devices by name
	comms   map[int]string // names of processes
	noRDMA  bool           // the kernel had no RDMA when it was last asked for devices
}

// NewLive opens this host. The error names the directory that cannot be opened; that
// netlink or a file is missing is an answer, not an error. The caller closes it.
func NewLive(cfg LiveConfig) (*Live, error) {
	if cfg.SysfsRoot == "" {
		cfg.SysfsRoot = "/sys"
	}
	if cfg.ProcRoot == "" {
		cfg.ProcRoot = "/proc"
	}
	if cfg.DevRoot == "" {
		cfg.DevRoot = "/dev"
	}
	if err := supported(); err != nil {
		return nil, err
	}
	l := &Live{cfg: cfg, comms: map[int]string{}}
	for _, t := range []struct {
		to  **tree
		dir string
		// The usual directory, what is always in it, and what is mounted there. A
		// container may be without: then nothing of it is readable, for that reason.
		usual, has, what string
	}{{&l.sys, cfg.SysfsRoot, "/sys", "class", "sysfs"}, {&l.proc, cfg.ProcRoot, "/proc", "self", "proc"}, {&l.dev, cfg.DevRoot, cfg.DevRoot, "", "dev"}} {
		tree, err := openTree(t.dir, true)
		switch {
		case err != nil && t.dir != t.usual:
			l.Close()
			return nil, fmt.Errorf("read the host under %s: %w", t.dir, err)
		case t.what == "dev" && err != nil:
			continue
		case err != nil:
			tree = missingTree(fmt.Sprintf("%s is not mounted at %s: %v", t.what, t.dir, err))
		case t.dir == t.usual && t.has != "" && !tree.has(t.has):
			tree.Close()
			tree = missingTree(fmt.Sprintf("%s is not mounted at %s", t.what, t.dir))
		}
		*t.to = tree
	}
	l.threads = l.proc.has("thread-self/net")
	return l, nil
}

// Close closes what was opened.
func (l *Live) Close() error {
	for _, t := range []*tree{l.sys, l.proc, l.dev} {
		if t != nil {
			t.Close()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clients.close()
	return nil
}

// Origin says that this source is live.
func (l *Live) Origin() snapshot.Origin { return snapshot.Live }

// in returns the tree of a name and the name in it.
func (l *Live) in(name string) (*tree, string, error) {
	head, rest, _ := strings.Cut(name, "/")
	if rest == "" {
		rest = "."
	}
	switch head {
	case "sys":
		return l.sys, rest, nil
	case "proc":
		// proc/net is the namespace of the first thread, not of the one that asks.
		if of, ok := strings.CutPrefix(rest, "net/"); ok && l.threads {
			rest = "thread-self/net/" + of
		}
		return l.proc, rest, nil
	}
	return nil, "", ErrNoEntry
}

// ReadFile implements Source.
func (l *Live) ReadFile(name string) ([]byte, error) {
	t, rest, err := l.in(name)
	if err != nil {
		return nil, err
	}
	return t.readFile(rest, MaxFile)
}

// ReadDir implements Source.
func (l *Live) ReadDir(name string) ([]string, error) {
	t, rest, err := l.in(name)
	if err != nil {
		return nil, err
	}
	names, err := t.dirNames(rest)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// ReadLink implements Source.
func (l *Live) ReadLink(name string) (string, error) {
	t, rest, err := l.in(name)
	if err != nil {
		return "", err
	}
	return t.readLink(rest)
}

// Ask implements Source.
func (l *Live) Ask(query string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer, err := l.answer(query)
	if err != nil {
		return nil, Failed(err)
	}
	b, err := json.Marshal(answer)
	if err != nil {
		return nil, failureOf(err.Error())
	}
	if len(b) > MaxAnswer {
		return nil, failureOf(fmt.Sprintf("the answer is longer than the limit of %d bytes", MaxAnswer))
	}
	return b, nil
}

// Tell implements Teller: for the queries of LiveConfig.Extra, and for interfaces unless
// one has a name with control characters.
func (l *Live) Tell(query string) (any, error) {
	_, extra := l.cfg.Extra[query]
	if !extra && query != QueryNetdevs {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	answer, err := l.answer(query)
	if err != nil {
		return nil, Failed(err)
	}
	netdevs, _ := answer.([]snapshot.Netdev)
	for i := range netdevs {
		if n := netdevs[i].Name; n != snapshot.CleanText(n) {
			return nil, nil
		}
	}
	return answer, nil
}

func (l *Live) answer(query string) (any, error) {
	if f, ok := l.cfg.Extra[query]; ok {
		return f()
	}
	switch query {
	case QueryMeta:
		return Meta{Version: MetaVersion, Taken: []time.Time{time.Now().Round(0).UTC()}}, nil
	case QueryApp:
		return l.app()
	}
	return l.kernel(query)
}

// comm names a process, empty if it is gone or not ours to see.
func (l *Live) comm(pid int) string {
	if name, ok := l.comms[pid]; ok {
		return name
	}
	b, err := l.proc.readFile(fmt.Sprintf("%d/comm", pid), maxLink)
	name := ""
	if err == nil {
		name = strings.TrimSuffix(string(b), "\n")
	}
	if len(l.comms) > 1<<16 {
		clear(l.comms)
	}
	l.comms[pid] = name
	return name
}

// parts cuts a query of the form prefix/name/rest.
func parts(query, prefix string) (name, rest string, ok bool) {
	q, ok := strings.CutPrefix(query, prefix)
	if !ok {
		return "", "", false
	}
	name, rest, _ = strings.Cut(q, "/")
	return name, rest, name != "" && path.Base(name) == name
}
