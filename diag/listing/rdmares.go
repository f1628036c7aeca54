package listing

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// resources is rdma resource show.
func (c *rdmaCommand) resources(args []string) ([]byte, error) {
	if len(args) == 0 {
		return c.summary(nil), nil
	}
	if d := c.s.Device(args[0]); d != nil && len(args) == 1 {
		return c.summary(d), nil
	}
	kind := shortened(args[0], "qp", "cm_id", "cq", "mr", "pd", "ctx", "srq")
	if kind == "" {
		return nil, fail(0, "Unknown parameter '%s'.", args[0])
	}
	f, err := c.filters(kind, args[1:])
	if err != nil {
		return c.errorBeside(err)
	}
	var rows []row
	for i := range c.s.Devices {
		d := &c.s.Devices[i]
		if f.device != nil && d != f.device {
			continue
		}
		all, err := c.byLink(kind, d, f)
		if err != nil {
			return c.errorBeside(err)
		}
		rows = append(rows, all...)
	}
	return c.form.print(rows), nil
}

// each makes the rows of a table that the filters let through.
func each[T any](v snapshot.Value[[]T], d *snapshot.Device, kind string, f *filters, port func(*T) int, make func(*T) (row, subject)) ([]row, error) {
	all, ok := v.Get()
	if !ok && !v.IsZero() {
		return nil, fail(1, "%s: %s: %s", d.Name, kind, v.Why())
	}
	var rows []row
	for i := range all {
		if f.port >= 0 && port != nil && port(&all[i]) != f.port {
			continue
		}
		r, s := make(&all[i])
		if f.pass(s) {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// byLink has objects that have a port in the order of the ports, those without one first.
func (c *rdmaCommand) byLink(kind string, d *snapshot.Device, f *filters) (rows []row, err error) {
	if kind != "qp" && kind != "cm_id" || f.port >= 0 {
		return c.objects(kind, d, f)
	}
	numbers := []int{0}
	for i := range d.Ports {
		numbers = append(numbers, d.Ports[i].Number)
	}
	for _, f.port = range numbers {
		all, err := c.objects(kind, d, f)
		if err != nil {
			return nil, err
		}
		rows = append(rows, all...)
	}
	f.port = -1
	return rows, nil
}

func (c *rdmaCommand) objects(kind string, d *snapshot.Device, f *filters) ([]row, error) {
	switch kind {
	case "qp":
		return each(d.QPs, d, kind, f, func(q *snapshot.QP) int { return q.Port }, func(q *snapshot.QP) (row, subject) { return c.qp(d, q) })
	case "cm_id":
		return each(d.CMIDs, d, kind, f, func(q *snapshot.CMID) int { return q.Port }, func(q *snapshot.CMID) (row, subject) { return c.cmid(d, q) })
	case "cq":
		return each(d.CQs, d, kind, f, nil, func(q *snapshot.CQ) (row, subject) { return c.cq(d, q) })
	case "mr":
		return each(d.MRs, d, kind, f, nil, func(q *snapshot.MR) (row, subject) { return c.mr(d, q) })
	case "pd":
		return each(d.PDs, d, kind, f, nil, func(q *snapshot.PD) (row, subject) { return c.pd(d, q) })
	case "ctx":
		return each(d.Contexts, d, kind, f, nil, func(q *snapshot.Context) (row, subject) { return c.ctx(d, q) })
	}
	return each(d.SRQs, d, kind, f, nil, func(q *snapshot.SRQ) (row, subject) { return c.srq(d, q) })
}

// onLink starts a row of an object that has a port, or has none yet.
func (c *rdmaCommand) onLink(d *snapshot.Device, port int) row {
	r := c.indexed(d)
	if port == 0 {
		r.lead("link " + d.Name + "/- ")
		return r
	}
	r.lead(fmt.Sprintf("link %s/%d ", d.Name, port))
	r.jsonNumber("port", uint64(port))
	return r
}

func (c *rdmaCommand) onDev(d *snapshot.Device) row {
	r := c.indexed(d)
	r.lead("dev " + d.Name + " ")
	return r
}

func (c *rdmaCommand) qp(d *snapshot.Device, q *snapshot.QP) (row, subject) {
	r := c.onLink(d, q.Port)
	r.num("lqpn", uint64(q.LQPN))
	r.maybeNum("rqpn", q.RQPN)
	r.str("type", q.Type)
	r.str("state", q.State)
	r.maybeNum("rq-psn", q.RQPSN)
	r.maybeNum("sq-psn", q.SQPSN)
	r.maybeStr("path-mig-state", q.PathMig)
	r.maybeNum("pdn", q.PDN)
	r.owner(q.PID, q.Comm, q.IsKernel)
	return r, func(key string) (uint64, string, bool) {
		switch key {
		case "lqpn":
			return uint64(q.LQPN), "", true
		case "rqpn":
			return number(q.RQPN)
		case "type":
			return 0, q.Type, true
		case "state":
			return 0, q.State, true
		case "rq-psn":
			return number(q.RQPSN)
		case "sq-psn":
			return number(q.SQPSN)
		case "path-mig-state":
			return 0, q.PathMig.Or(""), q.PathMig.IsKnown()
		case "pdn":
			return number(q.PDN)
		}
		return number(q.PID)
	}
}

func (c *rdmaCommand) cmid(d *snapshot.Device, q *snapshot.CMID) (row, subject) {
	r := c.onLink(d, q.Port)
	r.num("cm-idn", uint64(q.CMIDN))
	r.maybeNum("lqpn", q.LQPN)
	r.maybeStr("qp-type", q.Type)
	r.maybeStr("state", q.State)
	r.maybeStr("ps", q.PS)
	r.owner(q.PID, q.Comm, q.IsKernel)
	known(q.Source, func(a string) { r.str("src-addr", bare(a)) })
	known(q.Dest, func(a string) { r.str("dst-addr", bare(a)) })
	return r, func(key string) (uint64, string, bool) {
		switch key {
		case "cm-idn":
			return uint64(q.CMIDN), "", true
		case "lqpn":
			return number(q.LQPN)
		case "qp-type":
			return 0, q.Type.Or(""), q.Type.IsKnown()
		case "state":
			return 0, q.State.Or(""), q.State.IsKnown()
		case "ps":
			return 0, q.PS.Or(""), q.PS.IsKnown()
		case "src-addr", "dst-addr", "src-port", "dst-port":
			v := q.Source
			if key[0] == 'd' {
				v = q.Dest
			}
			host, port := splitPort(v.Or(""))
			if strings.HasSuffix(key, "addr") {
				return 0, host, v.IsKnown()
			}
			return port, "", v.IsKnown()
		}
		return number(q.PID)
	}
}

func (c *rdmaCommand) cq(d *snapshot.Device, q *snapshot.CQ) (row, subject) {
	r := c.onDev(d)
	r.num("cqn", uint64(q.CQN))
	r.num("cqe", uint64(q.CQE))
	known(q.Users, func(v uint64) { r.num("users", v) })
	r.maybeStr("poll-ctx", q.PollCtx)
	known(q.AdaptiveMod, func(on bool) { r.onOff("adaptive-moderation", on) })
	r.maybeNum("ctxn", q.CTXN)
	r.owner(q.PID, q.Comm, q.IsKernel)
	return r, func(key string) (uint64, string, bool) {
		switch key {
		case "cqn":
			return uint64(q.CQN), "", true
		case "users":
			return q.Users.Or(0), "", q.Users.IsKnown()
		case "poll-ctx":
			return 0, q.PollCtx.Or(""), q.PollCtx.IsKnown()
		case "ctxn":
			return number(q.CTXN)
		}
		return number(q.PID)
	}
}

func (c *rdmaCommand) mr(d *snapshot.Device, q *snapshot.MR) (row, subject) {
	r := c.onDev(d)
	r.num("mrn", uint64(q.MRN))
	r.maybeHex("rkey", q.RKey)
	r.maybeHex("lkey", q.LKey)
	known(q.IOVA, func(v uint64) { r.hex("iova", v) })
	r.num("mrlen", q.Length)
	r.maybeNum("pdn", q.PDN)
	r.owner(q.PID, q.Comm, q.IsKernel)
	return r, func(key string) (uint64, string, bool) {
		switch key {
		case "mrn":
			return uint64(q.MRN), "", true
		case "mrlen":
			return q.Length, "", true
		case "rkey":
			return number(q.RKey)
		case "lkey":
			return number(q.LKey)
		case "pdn":
			return number(q.PDN)
		}
		return number(q.PID)
	}
}

func (c *rdmaCommand) pd(d *snapshot.Device, q *snapshot.PD) (row, subject) {
	r := c.onDev(d)
	r.num("pdn", uint64(q.PDN))
	r.maybeHex("local_dma_lkey", q.LocalKey)
	known(q.Users, func(v uint64) { r.num("users", v) })
	r.maybeNum("ctxn", q.CTXN)
	r.owner(q.PID, q.Comm, q.IsKernel)
	return r, func(key string) (uint64, string, bool) {
		switch key {
		case "pdn":
			return uint64(q.PDN), "", true
		case "users":
			return q.Users.Or(0), "", q.Users.IsKnown()
		case "ctxn":
			return number(q.CTXN)
		}
		return number(q.PID)
	}
}

func (c *rdmaCommand) ctx(d *snapshot.Device, q *snapshot.Context) (row, subject) {
	r := c.onDev(d)
	r.num("ctxn", uint64(q.CTXN))
	r.owner(q.PID, q.Comm, false)
	return r, func(key string) (uint64, string, bool) {
		if key == "ctxn" {
			return uint64(q.CTXN), "", true
		}
		return number(q.PID)
	}
}

func (c *rdmaCommand) srq(d *snapshot.Device, q *snapshot.SRQ) (row, subject) {
	r := c.onDev(d)
	r.num("srqn", uint64(q.SRQN))
	r.maybeStr("type", q.Type)
	if len(q.LQPNs) > 0 {
		words := make([]string, len(q.LQPNs))
		for i, p := range q.LQPNs {
			words[i] = strconv.Itoa(int(p[0]))
			if p[1] != p[0] {
				words[i] += "-" + strconv.Itoa(int(p[1]))
			}
		}
		r.word("lqpn", strings.Join(words, ","))
		r.list("lqpn", []string{strings.Join(words, ",")})
	}
	r.maybeNum("pdn", q.PDN)
	r.maybeNum("cqn", q.CQN)
	r.owner(q.PID, q.Comm, false)
	return r, func(key string) (uint64, string, bool) {
		switch key {
		case "srqn":
			return uint64(q.SRQN), "", true
		case "type":
			return 0, q.Type.Or(""), q.Type.IsKnown()
		case "pdn":
			return number(q.PDN)
		case "cqn":
			return number(q.CQN)
		}
		return number(q.PID)
	}
}

func number[T uint32 | int](v snapshot.Value[T]) (uint64, string, bool) {
	return uint64(v.Or(0)), "", v.IsKnown()
}

// bare is address:port as the original has it, IPv6 without brackets.
func bare(s string) string { return strings.NewReplacer("[", "", "]", "").Replace(s) }

// splitPort cuts address:port, IPv6 in brackets or not.
func splitPort(s string) (host string, port uint64) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, 0
	}
	port, _ = strconv.ParseUint(s[i+1:], 10, 16)
	return strings.Trim(s[:i], "[]"), port
}
