package doctor

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// app is the program that the facts of a scope speak of: the first process, or the one
// that the scope was given.
func (s *scope) app() *snapshot.App {
	s.asked = true
	if s.proc != nil {
		return s.proc
	}
	return s.now.host.App
}

// processKind are the processes of a program of which all facts say the same; they are
// judged once.
type processKind struct {
	app  *snapshot.App
	pids []int
}

// processes are the kinds of processes of the program of a host, in the order of their
// first; one for a program of one process, none without a program.
func (w *work) processes(h *snapshot.Snapshot) []processKind {
	if out, ok := w.programs[h]; ok {
		return out
	}
	var out []processKind
	at := map[string]int{}
	all := everyProcess(h.App)
	for _, a := range all {
		key := ""
		if len(all) > 1 {
			key = kindOfProcess(h, a)
		}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, processKind{app: a})
		}
		if pid, ok := a.PID.Get(); ok {
			out[i].pids = append(out[i].pids, pid)
		}
	}
	w.programs[h] = out
	return out
}

// maxProcesses bounds what is judged of a recording; what reads a host has a bound of
// its own.
const maxProcesses = 64

// everyProcess are the processes of a program, each with what is known of the program
// as a whole: what it asks for and what it printed.
func everyProcess(first *snapshot.App) []*snapshot.App {
	if first == nil {
		return nil
	}
	all := []*snapshot.App{first}
	for i := range first.Others[:min(len(first.Others), maxProcesses-1)] {
		a := *first
		own := &first.Others[i]
		a.PID, a.Comm, a.UID, a.CapEff, a.CPUs, a.Cgroup = own.PID, own.Comm, own.UID, own.CapEff, own.CPUs, own.Cgroup
		a.Memlock, a.MemlockHard, a.OpenFiles, a.ShellLimit = own.Memlock, own.MemlockHard, own.OpenFiles, own.ShellLimit
		a.VmLckKB, a.VmPinKB, a.Env, a.EnvUnreadable = own.VmLckKB, own.VmPinKB, own.Env, own.EnvUnreadable
		all = append(all, &a)
	}
	return all
}

// kindOfProcess is the same text for processes of which facts say the same.
func kindOfProcess(h *snapshot.Snapshot, a *snapshot.App) string {
	var uses []string
	for i := range h.Devices {
		if usesDevice(a, &h.Devices[i]) {
			uses = append(uses, h.Devices[i].Name)
		}
	}
	lock := a.CapEff
	if c, ok := lock.Get(); ok {
		lock = snapshot.Known(c >> capIPCLock & 1)
	}
	b, err := json.Marshal([]any{a.Comm, a.Memlock, a.ShellLimit, lock, a.CPUs, a.Env, a.EnvUnreadable, uses})
	if err != nil {
		return a.PID.Why() + strconv.Itoa(a.PID.Or(0)) // a kind of its own
	}
	return string(b)
}

// judgeAll holds a thing against a rule, for each process of the program if the rule
// asks about the program. What it says alike of several processes is one finding.
func (w *work) judgeAll(r *Rule, s *scope) []Finding {
	s.proc, s.asked = nil, false
	f, ok := judge(r, s)
	if !s.asked {
		return only(f, ok)
	}
	kinds := w.processes(s.now.host)
	if len(kinds) == 0 {
		return only(f, ok)
	}
	f.Processes = slices.Clone(kinds[0].pids)
	out := only(f, ok)
	for _, k := range kinds[1:] {
		s.proc = k.app
		g, applies := judge(r, s)
		if !applies {
			continue
		}
		i := slices.IndexFunc(out, func(o Finding) bool { return sameSaid(&o, &g) })
		if i < 0 {
			g.Processes = slices.Clone(k.pids)
			out = append(out, g)
			continue
		}
		out[i].Processes = append(out[i].Processes, k.pids...)
	}
	s.proc = nil
	for i := range out {
		slices.Sort(out[i].Processes)
		if len(out) > 1 || len(kinds) > 1 && len(out[i].Processes) < processCount(kinds) {
			out[i].Where += ", " + processNames(out[i].Processes)
		}
	}
	return out
}

func only(f Finding, ok bool) []Finding {
	if !ok {
		return nil
	}
	return []Finding{f}
}

func sameSaid(a, b *Finding) bool {
	return a.Status == b.Status && a.Condition == b.Condition && a.Confidence == b.Confidence && a.Cause == b.Cause && a.Why == b.Why && a.Missing == b.Missing &&
		slices.Equal(a.Evidence, b.Evidence) && reflect.DeepEqual(a.fixes, b.fixes)
}

func processCount(kinds []processKind) int {
	n := 0
	for i := range kinds {
		n += len(kinds[i].pids)
	}
	return n
}

// processNames names processes for people.
func processNames(pids []int) string {
	words := make([]string, len(pids))
	for i, pid := range pids {
		words[i] = strconv.Itoa(pid)
	}
	if len(words) == 1 {
		return "process " + words[0]
	}
	return "processes " + names(words)
}

// Program is the program that the doctor was told of.
type Program struct {
	Name string `json:"name"`
	// Processes are those that were looked at; Matching is how many have the name.
	Processes []int `json:"processes"`
	Matching  int   `json:"matching"`
}

// program describes the program of a host; nil where no process is known.
func (w *work) program(h *snapshot.Snapshot) *Program {
	kinds := w.processes(h)
	if processCount(kinds) == 0 {
		return nil
	}
	p := &Program{Name: oneLine(h.App.Comm.Or("program"))}
	for i := range kinds {
		p.Processes = append(p.Processes, kinds[i].pids...)
	}
	slices.Sort(p.Processes)
	p.Matching = max(h.App.Matching, len(p.Processes))
	return p
}

func (p *Program) text(b *strings.Builder) {
	fmt.Fprintf(b, "program: %s, %s", p.Name, processNames(p.Processes))
	if more := p.Matching - len(p.Processes); more > 0 {
		fmt.Fprintf(b, "; %d more of this name were not looked at (at most %d are; --pid names one)", more, maxProcesses)
	}
	b.WriteByte('\n')
}
