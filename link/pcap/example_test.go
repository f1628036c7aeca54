package pcap_test

import (
	"fmt"
	"log"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/pcap"
	"github.com/verbena-rdma/verbena/verbs"
)

// A device that writes down what it sends and receives. Here it sends one datagram to
// itself; wireshark, tshark and verbena decode read the file.
func ExampleWriter() {
	dir, err := os.MkdirTemp("", "")
	check(err)
	defer os.RemoveAll(dir)
	file, err := os.Create(filepath.Join(dir, "device.pcapng"))
	check(err)
	w, err := pcap.NewWriter(file) // owns the file
	check(err)
	dev, err := verbs.Open(verbs.Config{
		Addr: netip.MustParseAddr("127.0.0.17"),
		Wrap: func(l link.Link) link.Link {
			c, err := w.Wrap(l, pcap.Config{Name: "dev0"})
			check(err)
			return c
		},
	})
	check(err)

	sendToItself(dev)

	check(dev.Close()) // first the device,
	check(w.Close())   // then the writer: it says what could not be written
	b, err := os.ReadFile(file.Name())
	check(err)
	fmt.Printf("%x, the magic number of pcapng\n", b[:4])
	// Output:
	// 0a0d0d0a, the magic number of pcapng
}

func sendToItself(dev *verbs.Device) {
	const key = 0x1234
	pd := dev.AllocPD()
	cq, err := dev.CreateCQ(verbs.CQConfig{})
	check(err)
	qp, err := pd.CreateQP(verbs.QPConfig{Type: ib.UD, SendCQ: cq, RecvCQ: cq})
	check(err)
	check(qp.ToInitUD(key))
	check(qp.ToRTR(verbs.Path{}))
	check(qp.ToRTS(verbs.Path{}))
	ah, err := pd.CreateAH(ib.AV{DGID: dev.GIDs()[0].GID})
	check(err)
	check(qp.PostSend(ib.SendWR{
		Op: ib.Send, Flags: ib.Inline, InlineData: []byte("hello"),
		UD: ib.Datagram{AH: ah.Handle(), QPN: qp.Num(), QKey: key},
	}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
