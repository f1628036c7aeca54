package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/rdmacm"
)

func TestBoth(t *testing.T) {
	var out strings.Builder
	if err := both(t.Context(), "127.0.0.41", "127.0.0.42", 0, &out); err != nil {
		t.Fatal(err)
	}
	if want := "hello came back\nworld came back\n"; out.String() != want {
		t.Errorf("printed %q, want %q", &out, want)
	}
}

// Several clients at once, one after the other from each address; and what a
// client hears when nobody serves.
func TestClients(t *testing.T) {
	var lines strings.Builder // of the server: complaints
	s, err := serve("127.0.0.43", 0, &lines)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.run(ctx) }()
	at := hostPort("127.0.0.43", s.listener.Port())
	errs := make(chan error, 2)
	for _, from := range []string{"127.0.0.44", "127.0.0.45"} {
		go func() {
			var all error
			for range 3 {
				var out strings.Builder
				err := talk(ctx, at, from, []string{"one", "two"}, &out)
				if err == nil && out.String() != "one came back\ntwo came back\n" {
					err = errors.New(out.String())
				}
				all = errors.Join(all, err)
			}
			errs <- all
		}()
	}
	if err := errors.Join(<-errs, <-errs); err != nil {
		t.Error(err)
	}
	err = talk(ctx, hostPort("127.0.0.43", s.listener.Port()+1), "127.0.0.44", nil, &strings.Builder{})
	if !errors.Is(err, rdmacm.ErrRefused) {
		t.Errorf("nobody serves: %v", err)
	}
	cancel()
	<-done
	s.close()
	if lines.Len() > 0 {
		t.Errorf("the server complains: %s", &lines)
	}
}

func hostPort(host string, port uint16) string { return fmt.Sprintf("%s:%d", host, port) }
