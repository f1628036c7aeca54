package main

import (
	"strings"
	"testing"
)

func TestHello(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, "127.0.0.21", "127.0.0.22"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"127.0.0.21: RDMA_WRITE of 21 bytes: SUCCESS\n", `127.0.0.22: found in memory: "hello from 127.0.0.21"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
}
