package judge

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestReportCountsWhoWasHeard(t *testing.T) {
	account := "ran\trxe\tTestA\t\n" +
		"skipped\ttshark\tTestB\tno tshark on PATH\n" +
		"skipped\trxe\tTestC\tthe test was skipped\n" +
		"failed\tperftest\tTestD\tthe test failed\n" +
		"failed\trdma-core\tTestE\tno rping on PATH\n"
	var b strings.Builder
	if err := Report(strings.NewReader(account), &b); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, want := range []string{
		"judge tshark did not run: no tshark on PATH\n",
		"judge rdma-core did not run: no rping on PATH\n",
		"judge tcpdump did not run: no test of this run asked for it\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("report lacks %q:\n%s", want, got)
		}
	}
	if want := fmt.Sprintf("judges run 2 of %d\n", len(All())); !strings.HasSuffix(got, want) {
		t.Errorf("report does not end with %q:\n%s", want, got)
	}
}

func TestReportRefusesWhatItCannotRead(t *testing.T) {
	for _, account := range []string{"ran rxe\n", "ran\tnobody\tTestA\t\n"} {
		if err := Report(strings.NewReader(account), &strings.Builder{}); err == nil {
			t.Errorf("account %q was accepted", account)
		}
	}
}

func TestRecordAppendsOneLine(t *testing.T) {
	path := t.TempDir() + "/log"
	t.Setenv("VERBENA_JUDGE_LOG", path)
	record(entry{Ran, "rxe", "TestA", ""})
	record(entry{Skipped, "tshark", "TestB", "two\nlines"})
	got := readFile(t, path)
	if want := "ran\trxe\tTestA\t\nskipped\ttshark\tTestB\ttwo lines\n"; got != want {
		t.Errorf("account is %q, want %q", got, want)
	}
}

func TestNeedSkipsByName(t *testing.T) {
	t.Setenv("VERBENA_JUDGES", "none")
	path := t.TempDir() + "/log"
	t.Setenv("VERBENA_JUDGE_LOG", path)
	probe := &skipProbe{TB: t}
	ended := make(chan struct{})
	go func() { // Need leaves by Goexit
		defer close(ended)
		Need(probe, "tshark")
	}()
	<-ended
	if want := "judge tshark: left out by VERBENA_JUDGES=none"; probe.said != want {
		t.Errorf("the test said %q when it skipped, want %q", probe.said, want)
	}
	if got := readFile(t, path); !strings.HasPrefix(got, "skipped\ttshark\tTestNeedSkipsByName\t") {
		t.Errorf("account is %q", got)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// skipProbe is a test that keeps what it said when it was skipped.
type skipProbe struct {
	testing.TB
	said string
}

func (p *skipProbe) Skipf(format string, args ...any) {
	p.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
