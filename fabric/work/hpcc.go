package work

import (
	"fmt"
	"io"
	"strconv"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo/token"
)

// HPCC reads a flow.txt of HPCC's simulator and its kin: the number of flows,
// then for each
//
//	src dst priority dport bytes start
//
// with numbers of nodes, and the start in seconds. The port is not used, but
// that flows to port 200 are called "incast" where As has no Group, as that
// simulator's evaluation takes them. As there, what comes after the number of
// flows is not read. name is the file's, for errors.
func (r Reader) HPCC(in io.Reader, name string) Stream {
	return r.stream(token.NewReader(in, name), &hpccFlows{r: r})
}

type hpccFlows struct {
	r     Reader
	begun bool
	count int64
	have  int64
}

const incastPort = 200

func (h *hpccFlows) next(in *token.Reader) (Flow, token.Field, bool, error) {
	var none token.Field
	if !h.begun {
		h.begun = true
		n, err := in.NextInt("number of flows", 0, 1<<31-1)
		if err == nil && h.r.Unsorted && n > int64(h.r.limit()) {
			err = in.FailFile("holds %d flows, over the limit of %d in memory: sort it by start, so that it can be streamed", n, h.r.limit())
		}
		if err != nil {
			return Flow{}, none, false, err
		}
		h.count = n
	}
	if h.have == h.count {
		return Flow{}, none, false, nil
	}
	src, ok := in.Next()
	if !ok {
		if err := in.Err(); err != nil {
			return Flow{}, none, false, err
		}
		return Flow{}, none, false, in.FailEnd("the file ends after %d of %d flows", h.have, h.count)
	}
	h.have++
	f, err := h.read(in, src)
	return f, src, err == nil, err
}

func (h *hpccFlows) read(in *token.Reader, src token.Field) (Flow, error) {
	dst, ok := in.Next()
	if !ok {
		return Flow{}, missing(in, "destination")
	}
	from, to, err := h.r.ends(in, src, dst)
	if err != nil {
		return Flow{}, err
	}
	prio, err := in.NextInt("priority", 0, 7)
	if err != nil {
		return Flow{}, err
	}
	port, err := in.NextInt("port", 0, 65535)
	if err != nil {
		return Flow{}, err
	}
	bytes, err := in.NextInt("bytes", 1, MaxBytes)
	if err != nil {
		return Flow{}, err
	}
	start, err := nextTime(in, "start", MaxTime)
	if err != nil {
		return Flow{}, err
	}
	f := flow(&h.r.As, from, to, bytes, start)
	f.Prio = int8(prio)
	if f.Group == "" && port == incastPort {
		f.Group = "incast"
	}
	return f, nil
}

// WriteHPCC writes flows as HPCC's flow.txt: their order is that of a Stream,
// node gives the number of an endpoint's node, prio stands for -1. That file
// knows neither flows that wait for others nor endless ones: they are an error.
func WriteHPCC(w io.Writer, flows []Flow, node func(endpoint int32) int32, prio int8) error {
	buf := strconv.AppendInt(nil, int64(len(flows)), 10)
	buf = append(buf, '\n')
	for i := range flows {
		f := &flows[i]
		if len(f.After) > 0 || f.never() {
			return fmt.Errorf("flow %d cannot be written: flow.txt has neither flows that wait for others nor endless ones", i)
		}
		port, p := 100, f.Prio
		if f.Group == "incast" {
			port = incastPort
		}
		if p < 0 {
			p = prio
		}
		buf = fmt.Appendf(buf, "%d %d %d %d %d ", node(f.Src), node(f.Dst), p, port, f.Bytes)
		buf = append(appendSeconds(buf, f.Start), '\n')
		if len(buf) > 1<<15 {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	_, err := w.Write(buf)
	return err
}

// appendSeconds writes t exactly, without zeros at the end.
func appendSeconds(buf []byte, t sim.Time) []byte {
	buf = strconv.AppendInt(buf, int64(t/sim.Second), 10)
	frac := t % sim.Second
	if frac == 0 {
		return buf
	}
	buf = fmt.Appendf(buf, ".%012d", int64(frac))
	for buf[len(buf)-1] == '0' {
		buf = buf[:len(buf)-1]
	}
	return buf
}
