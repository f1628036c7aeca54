//go:build linux

package tree

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mdlayher/netlink"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source/nlask"
	"github.com/verbena-rdma/verbena/diag/source/nlask/nlfake"
	"github.com/verbena-rdma/verbena/diag/source/nldev"
)

// kernel answers questions of NETLINK_RDMA as the kernel's RDMA subsystem does: uapi rdma/rdma_netlink.h.
type kernel struct {
	devices []kernelDevice
	system  []byte
}

// kernelDevice has the attributes of its messages, but for those that name it.
type kernelDevice struct {
	name    string
	index   uint32
	attr    []byte
	ports   [][]byte          // attributes of ports 1, 2, …
	summary []byte            // RES_SUMMARY
	objects map[uint16][]byte // the table of each command of objects
	bound   []bound
	stat    map[uint32][]byte // counters, by port
	status  map[uint32][]byte // whether they are on
	mode    map[uint32][]byte // of counters of queue pairs
}

// bound is a counter of queue pairs and its entry.
type bound struct {
	port  uint32
	entry []byte
}

// Commands and attributes.
const (
	cmdDev, cmdPort, cmdSystem, cmdRes, cmdStat, cmdStatus                      = 1, 5, 6, 9, 17, 24
	cmdQP, cmdCMID, cmdCQ, cmdMR, cmdPD, cmdCTX, cmdSRQ                         = 10, 11, 12, 13, 14, 22, 23
	attrIndex, attrName, attrPort, attrBound, attrBoundEntry, mode, attrStatRes = 1, 2, 3, 77, 78, 74, 75
)

// answer returns the messages to a question.
func (k *kernel) answer(cmd uint16, dump bool, at map[uint16]uint32) ([][]byte, error) {
	if cmd == cmdSystem {
		return [][]byte{k.system}, nil
	}
	var all [][]byte
	for i := range k.devices {
		d := &k.devices[i]
		if want, ok := at[attrIndex]; ok && want != d.index {
			continue
		}
		m, err := d.answer(cmd, dump, at)
		if err != nil {
			return nil, err
		}
		all = append(all, m...)
	}
	if !dump && len(all) == 0 {
		return nil, syscall.EINVAL
	}
	return all, nil
}

func (d *kernelDevice) answer(cmd uint16, dump bool, at map[uint16]uint32) ([][]byte, error) {
	head := join(u32(attrIndex, d.index), str(attrName, d.name))
	port, onPort := at[attrPort]
	switch cmd {
	case cmdDev:
		return [][]byte{join(head, u32(attrPort, uint32(len(d.ports))), d.attr)}, nil
	case cmdPort:
		var all [][]byte
		for i, p := range d.ports {
			if n := uint32(i + 1); !onPort || n == port {
				all = append(all, join(head, u32(attrPort, n), p))
			}
		}
		return all, nil
	case cmdRes:
		return [][]byte{join(head, d.summary)}, nil
	case cmdStat:
		head = join(head, u32(attrPort, port))
		_, asksMode := at[mode]
		switch {
		case dump && at[attrStatRes] == attrMR:
			if d.objects[cmdMR] == nil {
				return nil, nil
			}
			return [][]byte{join(u32(attrIndex, d.index), str(attrName, d.name), table(attrMR, attrMREntry, u32(attrMRN, 1), u32(attrMRN, 2)))}, nil
		case dump:
			var entries []byte
			for _, b := range d.bound {
				if !onPort || b.port == port {
					entries = append(entries, attr(attrBoundEntry, b.entry)...)
				}
			}
			if entries == nil {
				return nil, nil
			}
			return [][]byte{join(u32(attrIndex, d.index), str(attrName, d.name), attr(attrBound, entries))}, nil
		case asksMode:
			return [][]byte{join(head, d.mode[port])}, nil
		}
		return [][]byte{join(head, d.stat[port])}, nil
	case cmdStatus:
		return [][]byte{join(head, u32(attrPort, port), d.status[port])}, nil
	}
	if d.objects[cmd] == nil { // none: no message
		return nil, nil
	}
	return [][]byte{join(head, d.objects[cmd])}, nil
}

// parse reads a question: its command, whether it wants all, and its numbers.
func parse(h netlink.Header, data []byte) (cmd uint16, dump bool, at map[uint16]uint32, err error) {
	at = map[uint16]uint32{}
	d, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return 0, false, nil, err
	}
	for d.Next() {
		if len(d.Bytes()) == 4 {
			at[d.Type()] = d.Uint32()
		}
	}
	return uint16(h.Type) & 0x3ff, h.Flags&netlink.Dump == netlink.Dump, at, d.Err()
}

// host reads this kernel with our client, as a live source would.
func (k *kernel) host() (*snapshot.Snapshot, error) {
	fake := &nlfake.Kernel{Answer: func(_ int, q netlink.Message) func() (nlfake.Reply, bool) {
		cmd, dump, at, err := parse(q.Header, q.Data)
		if err != nil {
			return nlfake.List(nlfake.Reply{Err: err})
		}
		answers, err := k.answer(cmd, dump, at)
		if no := syscall.Errno(0); errors.As(err, &no) {
			return nlfake.List(nlfake.Errno(q, int(no)))
		}
		return nlfake.Answers(q, q.Header.Type, answers...)
	}}
	c := nldev.New(fake.Dial(nlask.Limits{}), comm)
	defer c.Close()
	return readFrom(c, k.devices)
}

// serve answers programs that ask at a Unix socket (testdata/netlink.c), and returns its path.
func (k *kernel) serve(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "n")
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go k.session(t, c)
		}
	}()
	return path
}

func (k *kernel) session(t *testing.T, c net.Conn) {
	defer c.Close()
	b := make([]byte, 1<<16)
	for {
		n, err := c.Read(b)
		if err != nil || n == 0 {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) { // it may leave with answers unread
				t.Errorf("a question: %v", err)
			}
			return
		}
		var m netlink.Message
		if err := m.UnmarshalBinary(b[:n]); err != nil {
			t.Errorf("a question: %v", err)
			return
		}
		cmd, dump, at, err := parse(m.Header, m.Data)
		if err != nil {
			t.Errorf("a question: %v", err)
			return
		}
		answers, err := k.answer(cmd, dump, at)
		flags := netlink.HeaderFlags(0)
		if dump {
			flags = netlink.Multi
		}
		for _, a := range answers {
			send(t, c, m.Header, m.Header.Type, flags, a)
		}
		var no syscall.Errno
		if errors.As(err, &no) {
			send(t, c, m.Header, netlink.Error, 0, errorData(-int32(no), b[:n]))
		} else if dump {
			send(t, c, m.Header, netlink.Done, netlink.Multi, make([]byte, 4))
		} else if m.Header.Flags&netlink.Acknowledge != 0 {
			send(t, c, m.Header, netlink.Error, 0, errorData(0, b[:n]))
		}
	}
}

// errorData is an errno and the question it is about.
func errorData(errno int32, question []byte) []byte {
	return append(binary.NativeEndian.AppendUint32(nil, uint32(errno)), question...)
}

func send(t *testing.T, c net.Conn, to netlink.Header, kind netlink.HeaderType, flags netlink.HeaderFlags, data []byte) {
	data = append(data, make([]byte, (4-len(data)%4)%4)...)
	m := netlink.Message{Header: netlink.Header{Length: uint32(16 + len(data)), Type: kind, Flags: flags, Sequence: to.Sequence}, Data: data}
	b, err := m.MarshalBinary()
	if err == nil {
		_, err = c.Write(b)
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("an answer: %v", err)
	}
}

// attr is an attribute: 4 bytes of head, data, and padding to 4.
func attr(kind uint16, data []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(data)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), data...)
	return append(b, make([]byte, (4-len(b)%4)%4)...)
}

func u8(kind uint16, v byte) []byte { return attr(kind, []byte{v}) }
func u32(kind uint16, v uint32) []byte {
	return attr(kind, binary.NativeEndian.AppendUint32(nil, v))
}

func u64(kind uint16, v uint64) []byte {
	return attr(kind, binary.NativeEndian.AppendUint64(nil, v))
}
func str(kind uint16, s string) []byte { return attr(kind, append([]byte(s), 0)) }

func join(all ...[]byte) (b []byte) {
	for _, a := range all {
		b = append(b, a...)
	}
	return b
}
