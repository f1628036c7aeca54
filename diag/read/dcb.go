package read

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// dcb is the kernel's answer, completed by the files of a vendor's driver where there
// are some.
func (r *reader) dcb(d *snapshot.Netdev, sysfs bool) {
	v := ask[snapshot.DCB](r, fmt.Sprintf(source.QueryDCB, d.Name))
	d.DCB = v.Or(snapshot.DCB{})
	if !v.IsKnown() && !v.IsZero() {
		d.DCB.PFC = snapshot.Unreadable[snapshot.PFC](v.Why())
	}
	if !sysfs {
		return
	}
	qos := classNet + "/" + d.Name + "/qos/"
	d.DCB.Trust = either(nonEmpty(value(r, qos+"trust", text)), d.DCB.Trust)
	if b := r.buffers(qos); b.IsKnown() && !d.DCB.Buffer.IsKnown() {
		d.DCB.Buffer = b
	}
	ecn := classNet + "/" + d.Name + "/ecn/"
	d.DCB.NP = r.congestion(ecn + "roce_np")
	d.DCB.RP = r.congestion(ecn + "roce_rp")
	if d.PCI != nil && d.DCB.NP.IsZero() && d.DCB.RP.IsZero() {
		r.debugfs(d)
	}
}

// buffers reads prio2buffer "0,0,0,1,0,0,0,0," and buffer_size
// "130944,130944,0,0,0,0,0,0,max_buffer_size=262016".
func (r *reader) buffers(qos string) snapshot.Value[snapshot.DCBBuffer] {
	of := value(r, qos+"prio2buffer", text)
	size := value(r, qos+"buffer_size", text)
	s, ok := size.Get()
	if !ok {
		if size.IsZero() {
			return snapshot.Value[snapshot.DCBBuffer]{}
		}
		return snapshot.Unreadable[snapshot.DCBBuffer](size.Why())
	}
	var b snapshot.DCBBuffer
	list, total, _ := strings.Cut(s, "max_buffer_size=")
	b.Total, _ = strconv.ParseUint(strings.TrimSpace(total), 10, 64)
	for i, w := range strings.FieldsFunc(list, func(c rune) bool { return c == ',' || c == ' ' }) {
		n, err := unsigned(w)
		if err != nil || i >= 8 {
			r.problem(qos+"buffer_size", fmt.Sprintf("%.60q is no list of eight sizes", s))
			return snapshot.Unreadable[snapshot.DCBBuffer]("no list of eight sizes")
		}
		b.Size[i] = n
	}
	for i, w := range strings.FieldsFunc(of.Or(""), func(c rune) bool { return c == ',' || c == ' ' }) {
		n, err := number(w)
		if err != nil || n < 0 || n > 7 || i >= 8 {
			r.problem(qos+"prio2buffer", fmt.Sprintf("%.60q is no list of eight buffers", of.Or("")))
			return snapshot.Unreadable[snapshot.DCBBuffer]("no list of eight buffers")
		}
		b.PrioBuffer[i] = n
	}
	return snapshot.Known(b)
}

// congestion reads a directory of DCQCN's parameters: enable/0 to 7 and a number in
// each other file.
func (r *reader) congestion(dir string) snapshot.Value[snapshot.Congestion] {
	names, reason := r.tryList(dir, maxCounters)
	if reason != "" {
		return snapshot.Unreadable[snapshot.Congestion](reason)
	}
	if len(names) == 0 {
		return snapshot.Value[snapshot.Congestion]{}
	}
	c := snapshot.Congestion{Enabled: map[int]bool{}, Params: map[string]uint64{}}
	for _, n := range names {
		if n != "enable" {
			if v, ok := value(r, dir+"/"+n, unsigned).Get(); ok {
				c.Params[n] = v
			}
			continue
		}
		for prio := range 8 {
			if v, ok := value(r, dir+"/enable/"+strconv.Itoa(prio), flag).Get(); ok {
				c.Enabled[prio] = v
			}
		}
	}
	return snapshot.Known(c)
}

// debugfs reads the same parameters where the upstream mlx5 driver has them, for root:
// np_cnp_dscp, rp_ai_rate and so on. It does not say which priorities are enabled.
func (r *reader) debugfs(d *snapshot.Netdev) {
	dir := "sys/kernel/debug/mlx5/" + d.PCI.Address + "/cc_params"
	names, reason := r.tryList(dir, maxCounters)
	if reason != "" {
		d.DCB.NP = snapshot.Unreadable[snapshot.Congestion](reason)
		d.DCB.RP = snapshot.Unreadable[snapshot.Congestion](reason)
		return
	}
	np := snapshot.Congestion{Params: map[string]uint64{}}
	rp := snapshot.Congestion{Params: map[string]uint64{}}
	for _, n := range names {
		v, ok := quiet(r, dir+"/"+n, unsigned).Get()
		if !ok {
			continue
		}
		if name, is := strings.CutPrefix(n, "np_"); is {
			np.Params[name] = v
		} else {
			rp.Params[strings.TrimPrefix(n, "rp_")] = v
		}
	}
	if len(np.Params) > 0 {
		d.DCB.NP = snapshot.Known(np)
	}
	if len(rp.Params) > 0 {
		d.DCB.RP = snapshot.Known(rp)
	}
}

// lldpAgent finds lldpad by the name of its control socket: it answers peers' DCBX
// and overwrites what an operator has set.
func (r *reader) lldpAgent() snapshot.Value[string] {
	b, reason, ok := r.file("proc/net/unix")
	switch {
	case !ok && reason == "":
		return snapshot.Value[string]{}
	case !ok:
		return snapshot.Unreadable[string](reason)
	case strings.Contains(string(b), "/com/intel/lldpad"):
		return snapshot.Known("lldpad")
	}
	return snapshot.Known("")
}
