package handshake

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/ib"
)

// Lengths of perftest's messages in bytes, the closing zero counted.
const (
	VersionLen = 16
	KeyLen     = 59  // without a GID: InfiniBand by LID
	KeyGIDLen  = 108 // with a GID: always on RoCE
	MTULen     = 2
	reportLen  = 8
)

// ProtocolVersion is the version of perftest's protocol that this package
// speaks and announces. Peers from 6.28 on skip their newer steps for it.
const ProtocolVersion = "6.06"

// oldestVersion is the first version whose protocol has all steps of [Plan].
const oldestVersion = 5.70

// ErrFormat matches every error about bytes that are not the message of their
// step.
var ErrFormat = errors.New("malformed message")

// Key is what one end tells about one queue pair.
type Key struct {
	LID      uint16 // 0 on RoCE
	OutReads uint16 // READs and ATOMICs that this end can have outstanding
	QPN      ib.QPN
	PSN      ib.PSN
	RKey     ib.RKey
	Addr     uint64 // where the peer may read and write
	GID      ib.GID
	SRQN     uint32
}

// AppendKey appends k as perftest writes it: [KeyGIDLen] bytes with the GID,
// [KeyLen] without.
func AppendKey(b []byte, k Key, gid bool) []byte {
	b = fmt.Appendf(b, "%04x:%04x:%06x:%06x:%08x:%016x:", k.LID, k.OutReads, uint32(k.QPN), uint32(k.PSN), uint32(k.RKey), k.Addr)
	if !gid {
		b = fmt.Appendf(b, "%08x", k.SRQN)
		return append(b, 0)
	}
	for _, o := range k.GID {
		b = fmt.Appendf(b, "%02x:", o)
	}
	b = fmt.Appendf(b, "%08x:", k.SRQN)
	return append(b, 0)
}

// ParseKey reads a key of [KeyLen] or [KeyGIDLen] bytes. The error matches
// [ErrFormat] and quotes what does not fit.
func ParseKey(b []byte) (Key, error) {
	var k Key
	if len(b) != KeyLen && len(b) != KeyGIDLen {
		return k, fmt.Errorf("%w: key of %d bytes, want %d or %d", ErrFormat, len(b), KeyLen, KeyGIDLen)
	}
	text, _, _ := bytes.Cut(b, []byte{0})
	fields := strings.Split(strings.TrimSuffix(string(text), ":"), ":")
	want := 7
	if len(b) == KeyGIDLen {
		want = 23
	}
	if len(fields) != want {
		return k, fmt.Errorf("%w: key line %s has %d fields, want %d", ErrFormat, quote(text), len(fields), want)
	}
	p := fieldParser{line: text}
	k.LID = uint16(p.hex(fields[0], 16, "LID"))
	k.OutReads = uint16(p.hex(fields[1], 16, "outstanding reads"))
	k.QPN = ib.QPN(p.hex(fields[2], 24, "QPN"))
	k.PSN = ib.PSN(p.hex(fields[3], 24, "PSN"))
	k.RKey = ib.RKey(p.hex(fields[4], 32, "rkey"))
	k.Addr = p.hex(fields[5], 64, "address")
	if len(b) == KeyGIDLen {
		for i := range k.GID {
			k.GID[i] = byte(p.hex(fields[6+i], 8, "GID"))
		}
	}
	k.SRQN = uint32(p.hex(fields[want-1], 32, "SRQN"))
	if p.err != nil {
		return Key{}, p.err
	}
	return k, nil
}

// fieldParser remembers the first field of a line that does not parse.
type fieldParser struct {
	line []byte
	err  error
}

func (p *fieldParser) hex(s string, bits int, name string) uint64 {
	v, err := strconv.ParseUint(s, 16, bits)
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("%w: %s %s in key line %s is not a hexadecimal number of %d bits", ErrFormat, name, quote([]byte(s)), quote(p.line), bits)
	}
	return v
}

// quote shows foreign bytes on one line and at a bounded length.
func quote(b []byte) string {
	const most = 60
	if len(b) > most {
		return strconv.QuoteToASCII(string(b[:most])) + "…"
	}
	return strconv.QuoteToASCII(string(b))
}

// mark stands behind the text and its zero in the version block of this
// project; the byte after it is the version of [Extension].
const mark = "verbena"

const extensionVersion = 1

// Version is the block that opens perftest's protocol.
type Version struct {
	Text string // "6.06"
	// Ours is the version of the extension that the sender speaks, 0 for
	// perftest itself.
	Ours uint8
}

// Append appends the [VersionLen] bytes of v. A text too long for the block is
// cut.
func (v Version) Append(b []byte) []byte {
	var blk [VersionLen]byte
	n := copy(blk[:VersionLen-1], v.Text)
	if v.Ours != 0 && n+1+len(mark)+1 <= VersionLen {
		copy(blk[n+1:], mark)
		blk[n+1+len(mark)] = v.Ours
	}
	return append(b, blk[:]...)
}

// ParseVersion reads the opening block. It fails for text that is not a
// number and for versions before 5.70, whose protocol differs.
func ParseVersion(b []byte) (Version, error) {
	if len(b) != VersionLen {
		return Version{}, fmt.Errorf("%w: version of %d bytes, want %d", ErrFormat, len(b), VersionLen)
	}
	text, rest, _ := bytes.Cut(b, []byte{0})
	v := Version{Text: string(text)}
	n, err := strconv.ParseFloat(v.Text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return Version{}, fmt.Errorf("%w: %s is not a version of perftest: is the program on the other side one of perftest's?", ErrFormat, quote(b))
	}
	if n < oldestVersion {
		return Version{}, fmt.Errorf("peer runs perftest protocol %s: versions before %.2f do not fit %s", v.Text, oldestVersion, ProtocolVersion)
	}
	if len(rest) > len(mark) && string(rest[:len(mark)]) == mark {
		v.Ours = rest[len(mark)]
	}
	return v, nil
}

// Report is what the sending end measured, in the unit of the programs: MB/s
// of 2^20 bytes, or Gb/s where both ends print gigabits.
type Report struct {
	Size    uint64
	Iters   uint64
	Peak    float64
	Average float64
	MsgRate float64 // million messages a second
}

func (r Report) fields() [5]uint64 {
	return [5]uint64{r.Size, r.Iters, math.Float64bits(r.Peak), math.Float64bits(r.Average), math.Float64bits(r.MsgRate)}
}

// setFields takes what a peer reported. perftest divides by zero where it
// measured nothing; what is no rate becomes 0, "not measured".
func (r *Report) setFields(f [5]uint64) {
	*r = Report{f[0], f[1], rate(f[2]), rate(f[3]), rate(f[4])}
}

func rate(bits uint64) float64 {
	v := math.Float64frombits(bits)
	if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0
	}
	return v
}

func appendMTU(b []byte, m ib.MTU) []byte { return append(b, '0'+byte(m), 0) }

func parseMTU(b []byte) (ib.MTU, error) {
	text, _, _ := bytes.Cut(b, []byte{0})
	n, err := strconv.ParseUint(string(text), 10, 8)
	if err != nil || n < 1 || n > 5 {
		return 0, fmt.Errorf("%w: MTU code %s, want 1 (256) to 5 (4096)", ErrFormat, quote(b))
	}
	return ib.MTU(n), nil
}

func appendInt(b []byte, v int) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }
