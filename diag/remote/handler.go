package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/verbena-rdma/verbena/diag/source"
)

// Port is where peers ask, if nothing else is said.
const Port = 9881

// MaxInterval is the longest time between the two instants of a recording that a peer
// may ask for.
const MaxInterval = 30 * time.Second

const (
	path        = "/snapshot"
	contentType = "application/x-tar"
)

// Record writes a recording of two instants, or of one if the interval is 0, into a
// directory that does not exist yet; it keeps to source.MaxArchive bytes, since a longer
// one is refused.
type Record func(ctx context.Context, interval time.Duration, dir string) error

// Handler answers GET /snapshot?interval=DURATION with a recording, one at a time.
func Handler(record Record) http.Handler {
	free := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != path:
			http.Error(w, "only "+path+" is here", http.StatusNotFound)
			return
		case r.Method != http.MethodGet:
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "only GET", http.StatusMethodNotAllowed)
			return
		}
		interval, err := time.ParseDuration(r.URL.Query().Get("interval"))
		if err != nil || interval < 0 || interval > MaxInterval {
			http.Error(w, fmt.Sprintf("interval must be 0s to %v", MaxInterval), http.StatusBadRequest)
			return
		}
		select {
		case free <- struct{}{}:
		default:
			http.Error(w, "somebody else is being answered; ask again", http.StatusServiceUnavailable)
			return
		}
		defer func() { <-free }() // also while a slow reader reads: one recording is in memory
		b, err := recorded(r.Context(), record, interval)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", contentType)
		// Without a length the end is sent when this has returned: who has read it
		// all may ask again at once.
		_, _ = w.Write(b) // an error: the peer has gone
	})
}

// recorded makes a recording and leaves nothing of it on the disk.
func recorded(ctx context.Context, record Record, interval time.Duration) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "verbena-snapshot-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "recording")
	if err := record(ctx, interval, dir); err != nil {
		return nil, withoutPath(err, tmp)
	}
	var b bytes.Buffer
	if err := source.WriteTar(&b, dir); err != nil {
		return nil, withoutPath(err, tmp)
	}
	return b.Bytes(), nil
}

// withoutPath keeps a name that means nothing elsewhere out of an answer.
func withoutPath(err error, tmp string) error {
	return errors.New(strings.ReplaceAll(err.Error(), filepath.Join(tmp, "recording"), "of this host"))
}
