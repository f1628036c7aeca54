package nlask

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
)

// The real kernel: a dump of interfaces has lo; a question it does not know is refused;
// a message without an answer ends with the time.
func TestSocket(t *testing.T) {
	c, err := New(func() (Socket, error) { return open(0) }, Limits{Time: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	msgs, err := c.Execute(netlink.Message{Header: netlink.Header{Type: 18, Flags: netlink.Request | netlink.Dump}, Data: make([]byte, 16)})
	if err != nil || len(msgs) == 0 || !strings.Contains(string(msgs[0].Data), "lo\x00") {
		t.Errorf("%d messages, %v", len(msgs), err)
	}
	if _, err := c.Execute(netlink.Message{Header: netlink.Header{Type: 18, Flags: netlink.Request}, Data: []byte{1}}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a cut question: %v", err)
	}
	// The end of something that never was: the kernel takes it and says nothing.
	if _, err := c.Execute(netlink.Message{Header: netlink.Header{Type: netlink.Noop}}); err == nil || !strings.Contains(err.Error(), "no whole answer within 20ms") {
		t.Errorf("no answer: %v", err)
	}
	if c.sock != nil {
		t.Error("the socket of an answer that was given up is open")
	}
}

func TestDeadlineIsTold(t *testing.T) {
	s, err := open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, _, err := s.Receive(time.Now()); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if _, err := Dial(31); err == nil { // no such family
		t.Error("family 31 exists")
	}
}
