package rdmacm

// Event is something that has happened to a connection: one of [Established],
// [Disconnected], [TimewaitExit], [DeviceRemoved]; or to a multicast group:
// [Joined], [DeviceRemoved].
type Event interface{ event() }

// Established says that the connection may be used. Accept and Dial have returned, or
// are about to.
type Established struct {
	Private []byte // accepting end: of the peer's RTU, 224 bytes; nil if data came first
}

// Disconnected says that the connection has ended. Its queue pair is in Error.
type Disconnected struct {
	ByPeer bool // the peer has ended it; else this end has
	// Private is what the peer said: 220 bytes of its DREQ, or 224 of its DREP;
	// nil if it did not answer, or had forgotten the connection.
	Private []byte
}

// TimewaitExit says that packets of the connection are not under way any more;
// its queue pair may be used for another one.
type TimewaitExit struct{}

// Joined says that the queue pair is a member of the group, and what those need
// who send to it: the address vector with the group's GID, the QPN that all groups
// have, the Q_Key.
type Joined struct{ Datagram }

// DeviceRemoved says that the manager or its device was closed while the
// connection lived, or the membership.
type DeviceRemoved struct{}

func (Established) event()   {}
func (Disconnected) event()  {}
func (TimewaitExit) event()  {}
func (Joined) event()        {}
func (DeviceRemoved) event() {}
