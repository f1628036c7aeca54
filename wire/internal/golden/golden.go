package golden

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Frame is one recorded Ethernet frame.
type Frame struct {
	File  string // without folder and extension
	Index int    // from 1, as tshark counts
	Bytes []byte
}

// Frames returns all frames of all files in wire/testdata, in order of name.
func Frames(t testing.TB) []Frame {
	t.Helper()
	_, self, _, _ := runtime.Caller(0)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(self), "../../testdata/*.pcap"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings in wire/testdata (%v)", err)
	}
	var all []Frame
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(f)
		all = append(all, parse(t, name[:len(name)-len(".pcap")], b)...)
	}
	return all
}

// parse reads the classic pcap format, little-endian, of Ethernet.
func parse(t testing.TB, name string, b []byte) (frames []Frame) {
	t.Helper()
	le := binary.LittleEndian
	if len(b) < 24 || le.Uint32(b) != 0xA1B2C3D4 || le.Uint32(b[20:]) != 1 {
		t.Fatalf("%s: not a little-endian pcap file of Ethernet", name)
	}
	for b = b[24:]; len(b) != 0; {
		if len(b) < 16 || len(b)-16 < int(le.Uint32(b[8:])) {
			t.Fatalf("%s: truncated", name)
		}
		n := int(le.Uint32(b[8:]))
		if n != int(le.Uint32(b[12:])) {
			t.Fatalf("%s: frame %d was cut when captured", name, len(frames)+1)
		}
		frames = append(frames, Frame{File: name, Index: len(frames) + 1, Bytes: b[16 : 16+n : 16+n]})
		b = b[16+n:]
	}
	return frames
}
