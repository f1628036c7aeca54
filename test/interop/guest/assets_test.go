package guest

import (
	"slices"
	"testing"
)

func TestNewestKernelByNumber(t *testing.T) {
	got := []string{"6.1.0-10-amd64", "6.12.1-amd64", "6.1.0-9-amd64", "6.1.0-10-amd64.1"}
	slices.SortFunc(got, compareVersions)
	want := []string{"6.1.0-9-amd64", "6.1.0-10-amd64", "6.1.0-10-amd64.1", "6.12.1-amd64"}
	if !slices.Equal(got, want) {
		t.Errorf("order is %q, want %q", got, want)
	}
}
