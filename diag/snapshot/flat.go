package snapshot

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Our own devices are asked for their counters every few seconds, and the way through
// encoding/json is the greater part of what that costs. So a device without lists of
// objects is written and read here in one pass, to the same text; one function a type
// says the order of the fields for both ways. What is not in them, or not as this
// package writes it, is left to encoding/json.

// AppendDevice appends what encoding/json writes of a device.
func AppendDevice(b []byte, d *Device) ([]byte, error) {
	c := coder{b: b}
	if c.device(d); !c.failed {
		return c.b, nil
	}
	text, err := json.Marshal(d)
	return append(b, text...), err
}

// ReadDevice reads what AppendDevice wrote, as encoding/json would, if it is a device
// without lists of objects. Texts of the device are parts of s. It fails where
// encoding/json may not.
func ReadDevice(s string) (d Device, ok bool) {
	c := coder{reads: true, s: s}
	c.device(&d)
	return d, !c.failed && c.s == ""
}

// coder writes, or reads if it reads. After a failure it does neither.
type coder struct {
	reads, failed bool
	first         bool   // in an object: no field yet
	b             []byte // what is written
	s             string // what is to be read
}

func (c *coder) device(d *Device) {
	if d.PCI != nil || !d.UVerbs.IsZero() || !d.ABI.IsZero() || !d.Attr.IsZero() || !d.QPs.IsZero() || !d.CQs.IsZero() || !d.MRs.IsZero() ||
		!d.PDs.IsZero() || !d.CMIDs.IsZero() || !d.SRQs.IsZero() || !d.Contexts.IsZero() || !d.Bound.IsZero() {
		c.failed = true
		return
	}
	c.begin()
	textField(c, `"name":`, &d.Name, true)
	c.valueInt(`"index":`, &d.Index)
	textField(c, `"kind":`, &d.Kind, false)
	c.valueText(`"driver":`, &d.Driver)
	c.valueInt(`"node_type":`, &d.NodeType)
	c.valueText(`"protocol":`, &d.Protocol)
	c.valueText(`"node_guid":`, &d.NodeGUID)
	c.valueText(`"sys_image_guid":`, &d.SysImageGUID)
	c.valueText(`"fw_ver":`, &d.Firmware)
	c.valueText(`"board_id":`, &d.BoardID)
	c.valueText(`"hca_type":`, &d.HCAType)
	c.valueText(`"hw_rev":`, &d.HWRev)
	c.valueText(`"node_desc":`, &d.NodeDesc)
	list(c, `"ports":`, &d.Ports, true, 1, (*coder).port)
	c.counters(`"counters":`, &d.Counters)
	c.numbers(`"resources":`, &d.Resources)
	list(c, `"qp_states":`, &d.QPStates, false, 4, (*coder).qpCount)
	list(c, `"queues":`, &d.Queues, false, 4, (*coder).queue)
	list(c, `"faults":`, &d.Faults, false, 1, (*coder).fault)
	intField(c, `"pid":`, &d.PID, false)
	textField(c, `"comm":`, &d.Comm, false)
	c.end()
}

func (c *coder) port(p *Port) {
	if p.GIDs != nil || p.PKeys != nil || !p.CapMask.IsZero() || p.Attr != nil || !p.StatMode.QP.IsZero() || p.StatMode.Optional != nil {
		c.failed = true
		return
	}
	c.begin()
	intField(c, `"port":`, &p.Number, true)
	c.valueInt(`"state":`, &p.State)
	c.valueInt(`"phys_state":`, &p.PhysState)
	c.valueText(`"rate":`, &p.Rate)
	c.valueInt64(`"rate_mbps":`, &p.RateMbps)
	c.valueInt(`"width":`, &p.Width)
	c.valueInt(`"speed":`, &p.Speed)
	c.valueText(`"link_layer":`, &p.LinkLayer)
	c.valueInt(`"lid":`, &p.LID)
	c.valueInt(`"lmc":`, &p.LMC)
	c.valueInt(`"sm_lid":`, &p.SMLID)
	c.valueInt(`"sm_sl":`, &p.SMSL)
	c.valueInt(`"max_mtu":`, &p.MaxMTU)
	c.valueInt(`"active_mtu":`, &p.ActiveMTU)
	c.valueText(`"netdev":`, &p.Netdev)
	c.valueInt(`"netdev_index":`, &p.NetIndex)
	c.valueInt(`"gid_tbl_len":`, &p.GIDSlots)
	c.counters(`"counters":`, &p.Counters)
	c.counters(`"hw_counters":`, &p.HWCounters)
	c.valueInt(`"lifespan_ms":`, &p.LifespanMs)
	c.counters(`"statistics":`, &p.Statistics)
	c.valueText(`"default_roce_mode":`, &p.CMRoCEMode)
	c.valueInt(`"default_roce_tos":`, &p.CMTOS)
	c.valueInt(`"traffic_class":`, &p.TrafficClass)
	c.end()
}

func (c *coder) counters(name string, v *Counters) {
	most := 0
	if c.reads {
		if end := strings.IndexByte(c.s, ']'); end > 0 {
			most = strings.Count(c.s[:end], "{")
		}
	}
	list(c, name, (*[]Counter)(v), false, most, (*coder).counter)
}

func (c *coder) counter(x *Counter) {
	c.begin()
	textField(c, `"name":`, &x.Name, true)
	if !c.key(`"value":`) {
		c.failed = true
		return
	}
	if !c.reads && x.Value.state == absent {
		c.b = append(c.b, "null"...)
	} else if c.known(&x.Value.state, x.Value.why) {
		number(c, &x.Value.v)
	}
	c.end()
}

func (c *coder) qpCount(g *QPCount) {
	c.begin()
	intField(c, `"port":`, &g.Port, false)
	textField(c, `"type":`, &g.Type, true)
	textField(c, `"state":`, &g.State, true)
	intField(c, `"n":`, &g.N, true)
	c.end()
}

func (c *coder) queue(q *Queue) {
	c.begin()
	intField(c, `"queue":`, &q.Index, true)
	intField(c, `"qps":`, &q.QPs, true)
	c.counters(`"counters":`, &q.Counters)
	c.end()
}

func (c *coder) fault(f *Fault) {
	c.begin()
	textField(c, `"rule":`, &f.Rule, true)
	intField(c, `"met":`, &f.Met, true)
	intField(c, `"hits":`, &f.Hits, true)
	c.end()
}

// take reads what must come next.
func (c *coder) take(text string) {
	var ok bool
	if c.s, ok = strings.CutPrefix(c.s, text); !ok {
		c.failed = true
	}
}

func (c *coder) begin() {
	c.first = true
	if c.reads {
		c.take("{")
	} else {
		c.b = append(c.b, '{')
	}
}

func (c *coder) end() {
	c.first = false
	if c.reads {
		c.take("}")
	} else {
		c.b = append(c.b, '}')
	}
}

// key writes the name of a field, or reports whether it is the next one.
func (c *coder) key(name string) bool {
	if c.failed {
		return false
	}
	s := c.s
	switch {
	case c.reads && !c.first:
		if s == "" || s[0] != ',' {
			return false
		}
		s = s[1:]
		fallthrough
	case c.reads:
		if len(s) < len(name) || s[:len(name)] != name {
			return false
		}
		c.s = s[len(name):]
	case !c.first:
		c.b = append(c.b, ',')
		fallthrough
	default:
		c.b = append(c.b, name...)
	}
	c.first = false
	return true
}

// known reports whether a reading is to be written or read: it writes one that could
// not be made. Such a one is not read here.
func (c *coder) known(state *valueState, why string) bool {
	if c.reads || *state == known {
		*state = known
		return true
	}
	c.b = append(c.b, unreadPrefix...)
	var ok bool
	if c.b, ok = appendText(c.b, why); !ok {
		c.failed = true
	}
	c.b = append(c.b, '}')
	return false
}

func (c *coder) valueText(name string, v *Value[string]) {
	if (c.reads || v.state != absent) && c.key(name) && c.known(&v.state, v.why) {
		text(c, &v.v)
	}
}

func (c *coder) valueInt(name string, v *Value[int]) {
	if (c.reads || v.state != absent) && c.key(name) && c.known(&v.state, v.why) {
		number(c, &v.v)
	}
}

func (c *coder) valueInt64(name string, v *Value[int64]) {
	if (c.reads || v.state != absent) && c.key(name) && c.known(&v.state, v.why) {
		number(c, &v.v)
	}
}

// textField is a field of text, which is left out if it is empty unless it must be there.
func textField[T ~string](c *coder, name string, v *T, must bool) {
	switch {
	case (c.reads || must || *v != "") && c.key(name):
		text(c, v)
	case must:
		c.failed = true
	}
}

func intField[T int | uint64](c *coder, name string, v *T, must bool) {
	switch {
	case (c.reads || must || *v != 0) && c.key(name):
		number(c, v)
	case must:
		c.failed = true
	}
}

func text[T ~string](c *coder, v *T) {
	if !c.reads {
		var ok bool
		if c.b, ok = appendText(c.b, string(*v)); !ok {
			c.failed = true
		}
		return
	}
	if c.s == "" || c.s[0] != '"' {
		c.failed = true
		return
	}
	for i := 1; i < len(c.s); i++ {
		switch x := c.s[i]; {
		case x == '"':
			*v, c.s = T(c.s[1:i]), c.s[i+1:]
			return
		case x == '\\' || x < ' ' || x >= 0x7f:
			c.failed = true
			return
		}
	}
	c.failed = true
}

// number reads whole numbers of at most 18 digits, which fit whatever the type but for
// an int of 32 bits.
func number[T int | int64 | uint64](c *coder, v *T) {
	if !c.reads {
		if *v < 0 {
			c.b = strconv.AppendInt(c.b, int64(*v), 10)
		} else {
			c.b = strconv.AppendUint(c.b, uint64(*v), 10)
		}
		return
	}
	n, i := uint64(0), 0
	for ; i < len(c.s) && i < 19 && c.s[i] >= '0' && c.s[i] <= '9'; i++ {
		n = n*10 + uint64(c.s[i]-'0')
	}
	if i == 0 || i == 19 || i > 1 && c.s[0] == '0' || i == len(c.s) || c.s[i] != ',' && c.s[i] != '}' || uint64(T(n)) != n {
		c.failed = true
		return
	}
	*v, c.s = T(n), c.s[i:]
}

// list is a field of a list, which is left out if it is empty unless it must be there.
// most is for how many there is room when it is read.
func list[T any](c *coder, name string, v *[]T, must bool, most int, one func(*coder, *T)) {
	if !c.reads && !must && len(*v) == 0 {
		return
	}
	if !c.key(name) {
		c.failed = c.failed || must
		return
	}
	if !c.reads {
		if *v == nil {
			c.b = append(c.b, "null"...)
			return
		}
		c.b = append(c.b, '[')
		for i := range *v {
			if i > 0 {
				c.b = append(c.b, ',')
			}
			one(c, &(*v)[i])
		}
		c.b = append(c.b, ']')
		return
	}
	if strings.HasPrefix(c.s, "null") {
		c.s = c.s[4:]
		return
	}
	c.take("[")
	*v = make([]T, 0, most)
	for !c.failed {
		if strings.HasPrefix(c.s, "]") {
			break
		}
		if len(*v) > 0 {
			c.take(",")
		}
		*v = append(*v, *new(T))
		one(c, &(*v)[len(*v)-1])
	}
	c.take("]")
}

// numbers is a field of numbers by name, in the order of the names.
func (c *coder) numbers(name string, v *map[string]uint64) {
	if !c.reads && len(*v) == 0 || !c.key(name) {
		return
	}
	c.begin()
	if !c.reads {
		var room [8]string
		names := room[:0]
		for k := range *v {
			names = append(names, k)
		}
		slices.Sort(names)
		for i, k := range names {
			if i > 0 {
				c.b = append(c.b, ',')
			}
			text(c, &k)
			c.b = append(c.b, ':')
			n := (*v)[k]
			number(c, &n)
		}
		c.end()
		return
	}
	*v = map[string]uint64{}
	for !c.failed && !strings.HasPrefix(c.s, "}") {
		if len(*v) > 0 {
			c.take(",")
		}
		var k string
		var n uint64
		text(c, &k)
		c.take(":")
		number(c, &n)
		if _, twice := (*v)[k]; twice {
			c.failed = true
		}
		(*v)[k] = n
	}
	c.end()
}
