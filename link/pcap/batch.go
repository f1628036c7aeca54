package pcap

import (
	"net/netip"
	"time"
)

const (
	// batchBytes and batchRecords are the room of one batch, maxBatches how many
	// there are at most: 16 MiB.
	batchBytes   = 512 << 10
	batchRecords = 1024
	maxBatches   = 32
)

// record is one piece or run: packets of one flow and direction.
type record struct {
	at       time.Time
	from, to int // in the batch's data
	seg      int // length of each packet but the last
	src, dst netip.Addr
	srcPort  uint16
	dstPort  uint16
	tos, ttl uint8
	out      bool
	ether    bool // a whole frame
	idents   bool // packet i has Identification i
}

// batch is what the path fills and the goroutine empties.
type batch struct {
	iface   int
	data    []byte
	records []record
	missed  uint64 // packets of this interface that were not recorded before
}

func newBatch() *batch {
	return &batch{data: make([]byte, 0, batchBytes), records: make([]record, 0, batchRecords)}
}

func (b *batch) reset() { b.data, b.records, b.missed = b.data[:0], b.records[:0], 0 }

// room reports whether n more bytes fit.
func (b *batch) room(n int) bool {
	return len(b.records) < cap(b.records) && len(b.data)+n <= cap(b.data)
}

// add copies data and keeps r for it.
func (b *batch) add(r record, data []byte) {
	r.from = len(b.data)
	b.data = append(b.data, data...)
	r.to = len(b.data)
	b.records = append(b.records, r)
}

// packets returns how many packets the record has.
func (r *record) packets() uint64 { return uint64((r.to - r.from + r.seg - 1) / r.seg) }

func (b *batch) packets() (n uint64) {
	for i := range b.records {
		n += b.records[i].packets()
	}
	return n
}
