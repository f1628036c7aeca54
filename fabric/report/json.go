package report

import (
	"io"
	"reflect"

	"github.com/verbena-rdma/verbena/fabric/result"
)

// The head of a file of a run.
const (
	jsonFormat = "verbena-run"
	// JSONVersion grows when a field changes its name or meaning. New fields
	// do not change it: readers leave out what they do not know.
	JSONVersion = 1
	// MaxJSON is the largest file that ReadJSON takes, in bytes.
	MaxJSON = 1 << 30
)

// document is a file of a run.
type document struct {
	Format  string
	Version int
	// Reduced says what was left out to make the file small; nothing of a file
	// that WriteJSON wrote.
	Reduced []string
	Run     result.Run
}

// WriteJSON writes all of a run, so that ReadJSON gives it back.
//
// Names are those of package result in snake case, with the unit behind:
// *_ps picoseconds, *_bps bit/s, *_bytes bytes, *_pps packets a second. An
// instant that never comes is null. Kinds and reasons are words. Priorities are
// a list of those that have counted something, with their number under "prio";
// fields of theirs that are zero are left out, as are empty texts, empty lists
// and false. The seed is decimal and the digest hexadecimal text, because many
// readers hold only 53 bits. There is one line for each node, flow, pause, ….
func WriteJSON(w io.Writer, r *result.Run) error {
	return writeDocument(w, &document{Format: jsonFormat, Version: JSONVersion, Run: *r})
}

func writeDocument(w io.Writer, d *document) error {
	e := encoder{w: w, plans: map[reflect.Type]*plan{}}
	e.document(d)
	return e.flush()
}

// ReadJSON reads what WriteJSON has written. An error begins with the place,
// "line:column: ", so that a caller puts the file's name and a colon before
// it. What the run says of nodes, ports and flows is in range: no reader of it
// needs to check. Fields that this version does not know are left out.
func ReadJSON(r io.Reader) (*result.Run, error) {
	d := newDecoder(r)
	var doc document
	if err := d.document(&doc); err != nil {
		return nil, err
	}
	if err := d.check(&doc.Run); err != nil {
		return nil, err
	}
	return &doc.Run, nil
}
