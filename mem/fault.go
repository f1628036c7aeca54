package mem

// Fault says why an access to memory was refused.
type Fault uint8

// The faults. FaultNone is success.
const (
	FaultNone   Fault = iota
	FaultKey          // no region has this key
	FaultPD           // the region belongs to another protection domain
	FaultAccess       // the region does not allow this kind of access
	FaultRange        // the range leaves the region, or wraps at 2^64
	FaultAlign        // an atomic's address is not a multiple of 8
	FaultLength       // the scatter/gather list is shorter than the data
	FaultQP           // the window is bound to another queue pair
	FaultBound        // the window of type 2 is bound already
	NumFaults
)

var faultNames = [NumFaults]string{"none", "key", "protection domain", "access", "range", "alignment", "length", "queue pair", "bound"}

func (f Fault) String() string {
	if f < NumFaults {
		return faultNames[f]
	}
	return "unknown"
}
