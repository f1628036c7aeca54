package source

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// sparseTar is a tar stream of a few blocks with one file of size bytes that is one
// hole (GNU's sparse format 1.0 in PAX records), which archive/tar reads but does not write.
func sparseTar(size int64) []byte {
	var b bytes.Buffer
	header := func(name string, kind byte, n int) {
		h := make([]byte, 512)
		copy(h, name)
		copy(h[100:], "0000644\x000000000\x000000000\x00")
		copy(h[124:], fmt.Sprintf("%011o\x0000000000000\x00        ", n))
		h[156] = kind
		copy(h[257:], "ustar\x0000")
		sum := 0
		for _, c := range h {
			sum += int(c)
		}
		copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
		b.Write(h)
	}
	block := func(text string) {
		b.WriteString(text)
		b.Write(make([]byte, (512-len(text)%512)%512))
	}
	var records strings.Builder
	for _, r := range [][2]string{
		{"GNU.sparse.major", "1"},
		{"GNU.sparse.minor", "0"},
		{"GNU.sparse.name", "t0/root/sys/big"},
		{"GNU.sparse.realsize", fmt.Sprint(size)},
	} {
		body := " " + r[0] + "=" + r[1] + "\n"
		fmt.Fprintf(&records, "%d%s", len(body)+2, body) // each is 10 to 99 bytes long
	}
	header("PaxHeaders.0/big", 'x', records.Len())
	block(records.String())
	header("GNUSparseFile.0/big", '0', 512)
	block("0\n") // a map without data
	b.Write(make([]byte, 1024))
	return b.Bytes()
}

// A few bytes of a stranger never become many in memory: holes of files, and names
// that are a directory for every two bytes.
func TestFewBytesStayFew(t *testing.T) {
	r, err := ParseTar("f", bytes.NewReader(sparseTar(1000)))
	if err != nil {
		t.Fatalf("a small hole, by which the stream is known to be one: %v", err)
	}
	if b, err := r.At(0).ReadFile("sys/big"); len(b) != 1000 || err != nil {
		t.Fatalf("a small hole: %d bytes, %v", len(b), err)
	}
	for _, size := range []int64{MaxArchive + 1, 1 << 40} {
		_, err := ParseTar("f", bytes.NewReader(sparseTar(size)))
		if err == nil || !strings.Contains(err.Error(), "more than 67108864 in all files") {
			t.Errorf("a hole of %d bytes: %v", size, err)
		}
	}
	var stream bytes.Buffer
	var text strings.Builder
	w := tar.NewWriter(&stream)
	for i := range maxMembers/60 + 10 {
		name := fmt.Sprintf("t0/%x/", i) + strings.Repeat("a/", 60) + "x"
		fmt.Fprintf(&text, "-- %s --\n", name)
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const want = "more than 131072 directories"
	if _, err := ParseTar("f", &stream); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("deep names in a stream: %v", err)
	}
	if _, err := ParseArchive("f", []byte(text.String())); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("deep names in a text: %v", err)
	}
}
