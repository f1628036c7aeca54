package report_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/report"
)

func BenchmarkJSON(b *testing.B) {
	r := large()
	var file bytes.Buffer
	if err := report.WriteJSON(&file, r); err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		b.SetBytes(int64(file.Len()))
		for b.Loop() {
			_ = report.WriteJSON(io.Discard, r)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(file.Len()))
		for b.Loop() {
			_, _ = report.ReadJSON(bytes.NewReader(file.Bytes()))
		}
	})
}

func BenchmarkHTML(b *testing.B) {
	r := large()
	for b.Loop() {
		_ = report.WriteHTML(io.Discard, r, page())
	}
}
