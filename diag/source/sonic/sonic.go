package sonic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Names of the texts that [Parse] knows; others are ignored.
const (
	PFCCounters = "show_pfc_counters"
	PFCWDStats  = "show_pfcwd_stats"
)

// MaxPorts is how many ports a switch has at most.
const MaxPorts = 4096

// Parse reads the texts of one switch by their names without .txt. The error names
// text, line and value.
func Parse(texts map[string]string) (snapshot.Switch, error) {
	p := &parser{at: map[string]int{}}
	if t, ok := texts[PFCCounters]; ok {
		if err := p.each(PFCCounters, t, p.counters); err != nil {
			return snapshot.Switch{}, err
		}
	}
	if t, ok := texts[PFCWDStats]; ok {
		if err := p.each(PFCWDStats, t, p.watchdog); err != nil {
			return snapshot.Switch{}, err
		}
	}
	return p.sw, nil
}

type parser struct {
	sw snapshot.Switch
	at map[string]int
	tx bool // in the table of sent frames
}

func (p *parser) each(name, text string, row func([]string) error) error {
	n := 0
	for line := range strings.Lines(text) {
		n++
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "---") {
			continue
		}
		if err := row(f); err != nil {
			return fmt.Errorf("%s.txt:%d: %w", name, n, err)
		}
	}
	return nil
}

func (p *parser) port(name string) (*snapshot.SwitchPort, error) {
	if i, ok := p.at[name]; ok {
		return &p.sw.Ports[i], nil
	}
	if len(p.sw.Ports) >= MaxPorts {
		return nil, fmt.Errorf("port %.40q: more than %d ports", name, MaxPorts)
	}
	p.at[name] = len(p.sw.Ports)
	p.sw.Ports = append(p.sw.Ports, snapshot.SwitchPort{Name: name})
	return &p.sw.Ports[len(p.sw.Ports)-1], nil
}

// counters reads a row of show pfc counters: port and eight numbers, first a table of
// received frames under "Port Rx", then one of sent frames under "Port Tx".
func (p *parser) counters(f []string) error {
	if f[0] == "Port" && len(f) > 1 {
		p.tx = f[1] == "Tx"
		return nil
	}
	if len(f) != 9 {
		return nil
	}
	var n [8]uint64
	missing := false
	for i, word := range f[1:] {
		if word == "N/A" {
			missing = true
			continue
		}
		v, err := number(word)
		if err != nil {
			return fmt.Errorf("port %.40q, PFC%d: %w", f[0], i, err)
		}
		n[i] = v
	}
	port, err := p.port(f[0])
	if err != nil {
		return err
	}
	v := snapshot.Known(n)
	if missing {
		v = snapshot.Unreadable[[8]uint64]("N/A")
	}
	if p.tx {
		port.PFCTx = v
	} else {
		port.PFCRx = v
	}
	return nil
}

// watchdog reads a row of show pfcwd stats: Ethernet0:3 operational 2/2 100/100
// 100/100 0/0 0/0.
func (p *parser) watchdog(f []string) error {
	name, queue, ok := strings.Cut(f[0], ":")
	if !ok || len(f) < 5 || f[0] == "QUEUE" {
		return nil
	}
	q, err := strconv.Atoi(queue)
	if err != nil || q < 0 || q > 63 {
		return fmt.Errorf("queue %.40q: not a port and a queue from 0 to 63", f[0])
	}
	w := snapshot.WatchdogQueue{Queue: q, Status: f[1]}
	for _, c := range []struct {
		word string
		a, b *uint64
	}{{f[2], &w.Detected, &w.Restored}, {f[3], &w.TxOK, &w.TxDrop}, {f[4], &w.RxOK, &w.RxDrop}} {
		if *c.a, *c.b, err = pair(c.word); err != nil {
			return fmt.Errorf("queue %.40q: %w", f[0], err)
		}
	}
	port, err := p.port(name)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(port.Queues, func(o snapshot.WatchdogQueue) bool { return o.Queue == q })
	if at >= 0 {
		port.Queues[at] = w
		return nil
	}
	port.Queues = append(port.Queues, w)
	return nil
}

func pair(word string) (a, b uint64, err error) {
	x, y, ok := strings.Cut(word, "/")
	if !ok {
		return 0, 0, fmt.Errorf("%.40q: not two numbers with a slash between", word)
	}
	if a, err = number(x); err != nil {
		return 0, 0, err
	}
	b, err = number(y)
	return a, b, err
}

// number reads a number with commas between thousands.
func number(word string) (uint64, error) {
	v, err := strconv.ParseUint(strings.ReplaceAll(word, ",", ""), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no number", word)
	}
	return v, nil
}
