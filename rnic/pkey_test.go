package rnic

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
)

// The sender's key decides with the receiver's (IBA vol.1 10.9.3): the same
// partition, and not two limited members. What does not match is counted and
// changes nothing; a queue pair sends the key of its row.
func TestPartitions(t *testing.T) {
	table := func(c *Config) { c.PKeys = []ib.PKey{ib.DefaultPKey, 0x8001, 0x0001, 0x8002, 0x7FFF, 0} }
	for _, typ := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
		for from, sent := range []ib.PKey{0xFFFF, 0x8001, 0x0001, 0x8002, 0x7FFF} {
			for to, mine := range []ib.PKey{0xFFFF, 0x8001, 0x0001, 0x8002, 0x7FFF} {
				t.Run(fmt.Sprintf("%v/0x%04x to 0x%04x", typ, uint16(sent), uint16(mine)), func(t *testing.T) {
					p := newPair(t, typ, asPackets, ib.MTU1024, 1<<16, table)
					var wire []ib.PKey
					p.tap = func(end int, b []byte) bool {
						if end == 0 {
							wire = append(wire, ib.PKey(b[2])<<8|ib.PKey(b[3]))
						}
						return true
					}
					for i, x := range []struct {
						h    *host
						q    *QP
						peer *QP
					}{{p.a, p.qa, p.qb}, {p.b, p.qb, p.qa}} {
						row := uint16([]int{from, to}[i])
						x.h.modify(x.q, ib.QPAttr{Mask: ib.AttrState, State: ib.Reset})
						attr := initAttr(typ)
						attr.PKeyIndex = row
						x.h.modify(x.q, attr)
						x.h.modify(x.q, rtrAttr(typ, ib.GIDFromAddr([]netip.Addr{addrB, addrA}[i]), 0, x.peer.qpn, ib.MTU1024))
						x.h.modify(x.q, rtsAttr(typ))
						if got := x.h.QueryQP(x.q); got.PKeyIndex != row || got.PKey != p.a.PKeys()[row] {
							t.Errorf("row %d, key 0x%04x", got.PKeyIndex, uint16(got.PKey))
						}
					}
					p.recv(1, 200)
					wr := ib.SendWR{Op: ib.Send, SGL: p.sgl(0, 100)}
					if typ == ib.UD {
						ah, err := p.a.CreateAH(p.a.pd, &ib.AV{DGID: ib.GIDFromAddr(addrB)})
						if err != nil {
							t.Fatal(err)
						}
						wr.UD = ib.Datagram{AH: ah, QPN: p.qb.qpn, QKey: testQKey}
					}
					p.post(wr)
					ok := sent&0x7FFF == mine&0x7FFF && (sent|mine)&0x8000 != 0
					got := len(p.b.poll())
					if drops := p.b.Stats().Get("drop_pkey"); ok != (got == 1) || ok != (drops == 0) {
						t.Errorf("%d received, %d dropped", got, drops)
					}
					if len(wire) == 0 || wire[0] != sent {
						t.Errorf("on the wire %x", wire)
					}
				})
			}
		}
	}
}

func TestPartitionTable(t *testing.T) {
	h := newHost(t, addrA, addrA6, func(c *Config) { c.PKeys = []ib.PKey{0x8001, 0, 0x8000} })
	q := h.qp(ib.RC, nil)
	for row, text := range map[uint16]string{1: "empty", 2: "empty", 3: "rows 0 to 2", 65535: "rows 0 to 2"} {
		attr := initAttr(ib.RC)
		attr.PKeyIndex = row
		if err := h.ModifyQP(0, q, &attr); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), text) {
			t.Errorf("row %d: %v", row, err)
		}
	}
	cfg := Config{GIDs: gidRows(addrA), Wire: wireCaps(), Rand: seeded(1), PKeys: make([]ib.PKey, 1<<16+1)}
	if _, err := New(cfg); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}
