package channel

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestFramesComeBackAsTheyWent(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	big := bytes.Repeat([]byte{7}, 200_000)
	if _, err := w.Stream(KindStdout).Write(big); err != nil {
		t.Fatal(err)
	}
	if err := w.Frame(KindData, nil); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for {
		kind, p, err := Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		if kind == KindData && len(p) == 0 {
			break
		}
		got = append(got, p...)
	}
	if !bytes.Equal(got, big) {
		t.Errorf("%d bytes came back of %d", len(got), len(big))
	}
	if _, _, err := Read(&b); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %v, want EOF", err)
	}
}

func TestReadRefusesBrokenFrames(t *testing.T) {
	if _, _, err := Read(bytes.NewReader([]byte{1, 0xff, 0, 0, 0})); err == nil {
		t.Error("a frame over the limit was accepted")
	}
	for n := 1; n < 8; n++ {
		frame := []byte{1, 0, 0, 0, 3, 'a', 'b', 'c'}
		if _, _, err := Read(bytes.NewReader(frame[:n])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a frame cut after %d bytes: %v", n, err)
		}
	}
}
