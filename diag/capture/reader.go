package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// Frame is one captured frame.
type Frame struct {
	Number int // from 1, as analysers count
	Time   time.Time
	Data   []byte // borrowed until the next frame
	Cut    int    // bytes that the capture left off
	link   layers.LinkType
}

// Reader reads frames of a capture file.
type Reader struct {
	src    source
	number int
	last   layers.LinkType
}

type source interface {
	ZeroCopyReadPacketData() (data []byte, ci gopacket.CaptureInfo, err error)
	LinkType() layers.LinkType
}

const pcapngMagic = 0x0A0D0D0A

// ErrFormat is matched by the errors about a file that is no capture, or is
// damaged.
var ErrFormat = errors.New("not a readable capture")

// NewReader reads the header of a pcap or pcapng file.
func NewReader(r io.Reader) (*Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	magic, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err // a directory, a bad disk
	}
	if err != nil {
		return nil, fmt.Errorf("%w: it has fewer than 4 bytes", ErrFormat)
	}
	var src source
	if binary.BigEndian.Uint32(magic) == pcapngMagic {
		src, err = pcapgo.NewNgReader(b, pcapgo.NgReaderOptions{WantMixedLinkType: true, SkipUnknownVersion: true})
	} else {
		src, err = pcapgo.NewReader(b)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return &Reader{src: src}, nil
}

// Next returns the next frame, or io.EOF after the last.
func (r *Reader) Next() (Frame, error) {
	data, ci, err := r.src.ZeroCopyReadPacketData()
	if errors.Is(err, io.EOF) {
		if ci.CaptureLength == 0 {
			return Frame{}, io.EOF
		}
		err = io.ErrUnexpectedEOF // behind the frame's header
	}
	if err != nil {
		return Frame{}, fmt.Errorf("%w: after frame %d: %w", ErrFormat, r.number, err)
	}
	r.number++
	link := r.src.LinkType()
	if len(ci.AncillaryData) > 0 {
		if l, ok := ci.AncillaryData[0].(layers.LinkType); ok {
			link = l
		}
	}
	r.last = link
	return Frame{Number: r.number, Time: ci.Timestamp, Data: data, Cut: ci.Length - len(data), link: link}, nil
}

// payload returns what of the frame a RoCE envelope is decoded from; isIP says
// that it begins with the IP header. ok is false for link types that are not
// understood and frames shorter than their link header.
func (f *Frame) payload() (b []byte, isIP, ok bool) {
	// The headers before the network layer that captures of "any" have, and the
	// offset of the EtherType in them.
	switch f.link {
	case layers.LinkTypeEthernet:
		return f.Data, false, true
	case layers.LinkTypeRaw, layers.LinkTypeIPv4, layers.LinkTypeIPv6, 12, 14:
		return f.Data, true, true
	case layers.LinkTypeLinuxSLL:
		return cooked(f.Data, 16, 14)
	case layers.LinkTypeLinuxSLL2:
		return cooked(f.Data, 20, 0)
	case layers.LinkTypeNull, layers.LinkTypeLoop:
		if len(f.Data) < 4 {
			return nil, false, false
		}
		return f.Data[4:], true, true
	}
	return nil, false, false
}

func cooked(b []byte, header, etherType int) (_ []byte, isIP, ok bool) {
	if len(b) < header {
		return nil, false, false
	}
	switch binary.BigEndian.Uint16(b[etherType:]) {
	case uint16(layers.EthernetTypeIPv4), uint16(layers.EthernetTypeIPv6):
		return b[header:], true, true
	}
	return nil, false, false
}
