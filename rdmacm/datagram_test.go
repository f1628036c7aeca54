package rdmacm_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
)

// A service of datagrams is looked up, and what it says reaches it.
func TestLookup(t *testing.T) {
	a, b := newSides(t, nil)
	l := b.listen(rdmacm.UDP, 7)
	server := b.qp(ib.UD)
	if err := errors.Join(server.ToInitUD(rdmacm.QKeyUDP), server.PostRecv(ib.RecvWR{SGL: b.mr.SGE(0, 104)}),
		server.ToRTR(verbs.Path{}), server.ToRTS(verbs.Path{})); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 1)
	go func() {
		req, err := l.Next(within(t))
		if err == nil && !bytes.Equal(req.Private(), padded("who?", 180)) {
			err = errors.New("the request says " + string(req.Private()))
		}
		if err == nil {
			err = req.AcceptUD(server, []byte("me"))
		}
		errs <- err
	}()
	d, err := a.m.Lookup(within(t), a.route(b, 7), rdmacm.Options{Private: []byte("who?")})
	if err := errors.Join(err, <-errs); err != nil {
		t.Fatal(err)
	}
	if d.QPN != server.Num() || d.QKey != rdmacm.QKeyUDP || !bytes.Equal(d.Private, padded("me", 136)) {
		t.Errorf("%+v", d)
	}
	client := a.qp(ib.UD)
	if err := errors.Join(client.ToInitUD(rdmacm.QKeyUDP), client.ToRTR(verbs.Path{}), client.ToRTS(verbs.Path{})); err != nil {
		t.Fatal(err)
	}
	ah, err := a.pd.CreateAH(d.AV)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.PostSend(ib.SendWR{
		Op: ib.Send, SGL: a.mr.SGE(0, 64), UD: ib.Datagram{AH: ah.Handle(), QPN: d.QPN, QKey: d.QKey},
	}); err != nil {
		t.Fatal(err)
	}
	var wcs [1]ib.WC
	if _, err := b.cq.Wait(within(t), wcs[:]); err != nil || wcs[0].Status != ib.Success || wcs[0].SrcQPN != client.Num() {
		t.Errorf("%+v, %v", wcs[0], err)
	}
}
