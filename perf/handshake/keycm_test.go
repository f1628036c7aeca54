package handshake

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
)

// The key line of ib_write_bw 4.5 -R between two Linux peers, as it was on the
// wire; ib_write_bw printed QPN 0x0012 and PSN 0xef8963 for it.
func TestRecordedKeyOverCM(t *testing.T) {
	const line = "00000000000000010000001200ef8963000003780000000000005" + "5d9ed245000" + "00000000000000000000ffff0a4d000c0000000000000001"
	b, err := hex.DecodeString(line)
	if err != nil {
		t.Fatal(err)
	}
	want := Key{
		OutReads: 1, QPN: 0x12, PSN: 0xef8963, RKey: 0x378, Addr: 0x55d9ed245000, GID: ib.GIDFromAddr(netip.MustParseAddr("10.77.0.12")),
	}
	got, err := ParseKeyCM(b)
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	again := AppendKeyCM(nil, want)
	again[KeyCMLen-1] = 1 // the index of the GID, which means nothing here
	if string(again) != string(b) {
		t.Errorf("written as %x, recorded %x", again, b)
	}
}

func TestBadKeysOverCM(t *testing.T) {
	for _, c := range []struct {
		name string
		spot int
	}{{"LID", 0}, {"outstanding reads", 4}, {"QPN", 8}, {"PSN", 12}} {
		b := make([]byte, KeyCMLen)
		b[c.spot] = 1
		if _, err := ParseKeyCM(b); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := ParseKeyCM(make([]byte, KeyCMLen-1)); !errors.Is(err, ErrFormat) {
		t.Errorf("short: %v", err)
	}
}
