package rdmacm

import (
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
	"github.com/verbena-rdma/verbena/wire/mad"
)

// Space is a port space.
type Space = mad.Space

// The port spaces.
const (
	TCP = mad.SpaceTCP // connections: RC and UC
	UDP = mad.SpaceUDP // datagrams: UD
)

// The room for private data in bytes. Peers see the whole field, filled up with
// zeros.
const (
	DialPrivate       = mad.REQUserLen        // 56
	LookupPrivate     = mad.SIDRREQUserLen    // 180
	AcceptPrivate     = mad.REPPrivateLen     // 196
	AcceptUDPrivate   = mad.SIDRREPPrivateLen // 136
	RejectPrivate     = mad.REJPrivateLen     // 148
	DisconnectPrivate = mad.DREQPrivateLen    // 220
	FarewellPrivate   = mad.DREPPrivateLen    // 224
)

// QKeyUDP is the Q_Key of queue pairs in port space UDP, as everybody uses it.
const QKeyUDP ib.QKey = 0x01234567

// Options of a connection. Zero fields take the defaults given; where a number
// can be 0 in earnest, -1 means that.
type Options struct {
	// Private is what the peer's program gets with the request or the answer.
	Private []byte
	// Farewell answers the peer's DREQ, when it comes.
	Farewell []byte

	// ResponderResources is how many READs and ATOMICs this end takes at a time,
	// InitiatorDepth how many it has outstanding; the peer's count, too. 0: 16 or
	// the device's limit; -1: none.
	ResponderResources, InitiatorDepth int
	// RetryCount is how often either end sends a packet again; Dial's counts.
	// RNRRetry is how often the peer does so when this end was not ready to
	// receive, 7 for ever. 0: 7; -1: never.
	RetryCount, RNRRetry int
	// MinRNRTimer is the code of how long the peer shall wait when this end is not
	// ready, see [ib.RNRDelay]. 0: 12, 0.64 ms.
	MinRNRTimer uint8
	// AckTimeoutExp is the local ACK timeout of both ends: 4.096 µs · 2^n. Dial
	// alone. 0: 17, 0.54 s.
	AckTimeoutExp uint8
	// TOS is the IPv4 TOS or IPv6 traffic class of all packets of the connection,
	// from both ends. Dial alone.
	TOS uint8
	// SL is the service level: the priority, 0–7. Dial alone.
	SL uint8
	// MTU is the path MTU. Dial alone. 0: the port's; where the peer refuses that
	// and names another, Dial takes the other.
	MTU ib.MTU
	// Access is what the peer may do to memory, for a queue pair in Reset. 0:
	// all of RDMA and ATOMICs.
	Access ib.Access
	// TimeoutExp is how long the peer has to answer before it is asked again:
	// 4.096 µs · 2^n, up to 31; Retries how often. 0: 18, 1.07 s, and 15; for
	// Retries -1: never again.
	TimeoutExp uint8
	Retries    int
}

// filled returns the options with their defaults, or why they cannot be.
func (o Options) filled(dev *verbs.Device, what string, private int) (Options, error) {
	most := min(dev.Attr().Limits.MaxRdAtomic, 255)
	for _, f := range []struct {
		name     string
		v        *int
		def, max int
	}{
		{"responder resources", &o.ResponderResources, min(verbs.DefaultRdAtomic, most), most},
		{"initiator depth", &o.InitiatorDepth, min(verbs.DefaultRdAtomic, most), most},
		{"retry count", &o.RetryCount, 7, 7},
		{"RNR retry count", &o.RNRRetry, 7, 7},
		{"CM retries", &o.Retries, 15, 15},
	} {
		switch {
		case *f.v == 0:
			*f.v = f.def
		case *f.v == -1:
			*f.v = 0
		case *f.v < -1 || *f.v > f.max:
			return o, errorf(ErrInvalid, "%s: %s is %d, can be 1 to %d, or -1 for none", what, f.name, *f.v, f.max)
		}
	}
	for _, f := range []struct {
		name     string
		v        *uint8
		def, max uint8
	}{
		{"min RNR timer", &o.MinRNRTimer, 12, 31},
		{"ACK timeout", &o.AckTimeoutExp, 17, 31},
		{"CM timeout", &o.TimeoutExp, 18, 31},
		{"service level", &o.SL, 0, 7},
	} {
		if *f.v == 0 {
			*f.v = f.def
		}
		if *f.v > f.max {
			return o, errorf(ErrInvalid, "%s: %s is %d, can be up to %d", what, f.name, *f.v, f.max)
		}
	}
	if o.Access == 0 {
		o.Access = ib.RemoteAll
	}
	if len(o.Private) > private {
		return o, errorf(ErrInvalid, "%s: private data of %d bytes, can be up to %d", what, len(o.Private), private)
	}
	if len(o.Farewell) > FarewellPrivate {
		return o, errorf(ErrInvalid, "%s: farewell of %d bytes, can be up to %d", what, len(o.Farewell), FarewellPrivate)
	}
	return o, nil
}
