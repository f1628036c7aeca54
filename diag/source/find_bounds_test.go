package source

import (
	"path/filepath"
	"strings"
	"testing"
)

// A directory with very many entries is refused after so many.
func TestCollectionBounds(t *testing.T) {
	dir := t.TempDir()
	for range 6 {
		t.TempDir() // a sibling
	}
	if got, err := collection(filepath.Dir(dir), 7); err != nil || len(got) != 7 {
		t.Errorf("%d entries of 7: %v", len(got), err)
	}
	if _, err := collection(filepath.Dir(dir), 6); err == nil || !strings.Contains(err.Error(), "more than 6 entries") {
		t.Errorf("%v", err)
	}
}
