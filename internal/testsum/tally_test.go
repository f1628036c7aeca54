package main

import (
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	const p = `"Package":"github.com/verbena-rdma/verbena/ib"`
	cases := []struct {
		rule, events string
		want         []string
	}{
		{
			"subtests count, and a skip tells its reason",
			`{"Action":"run",` + p + `,"Test":"TestA"}
{"Action":"run",` + p + `,"Test":"TestA/x"}
{"Action":"output",` + p + `,"Test":"TestA/x","Output":"    a_test.go:1: judge rxe: no kernel\n"}
{"Action":"output",` + p + `,"Test":"TestA/x","Output":"--- SKIP: TestA/x (0.00s)\n"}
{"Action":"skip",` + p + `,"Test":"TestA/x"}
{"Action":"pass",` + p + `,"Test":"TestA"}
{"Action":"pass",` + p + `,"Elapsed":0.5}
`,
			[]string{"1 passed, 0 failed, 1 skipped", "ib.TestA/x: a_test.go:1: judge rxe: no kernel", "ok  ib: 2 tests"},
		},
		{
			"a failure shows its output",
			`{"Action":"run",` + p + `,"Test":"TestA"}
{"Action":"output",` + p + `,"Test":"TestA","Output":"    a_test.go:1: got 1, want 2\n"}
{"Action":"fail",` + p + `,"Test":"TestA"}
{"Action":"output",` + p + `,"Output":"FAIL\n"}
{"Action":"fail",` + p + `,"Elapsed":0.5}
`,
			[]string{"0 passed, 1 failed, 0 skipped", "=== FAILED ib.TestA\n    a_test.go:1: got 1, want 2\n"},
		},
		{
			"a build failure is one failure and shows the compiler's words",
			`{"ImportPath":"ib.test","Action":"build-output","Output":"ib.go:3: undefined: x\n"}
{"Action":"fail",` + p + `,"FailedBuild":"ib.test"}
`,
			[]string{"0 passed, 1 failed, 0 skipped", "ib.go:3: undefined: x"},
		},
		{
			"a test that the process's death cut off has failed; its parent does not count besides",
			`{"Action":"run",` + p + `,"Test":"TestA"}
{"Action":"run",` + p + `,"Test":"TestA/x"}
{"Action":"output",` + p + `,"Test":"TestA/x","Output":"panic: boom\n"}
{"Action":"fail",` + p + `}
`,
			[]string{"0 passed, 1 failed, 0 skipped", "=== FAILED ib.TestA/x\npanic: boom"},
		},
		{
			"a package whose end was never told has failed",
			`{"Action":"start",` + p + `}
`,
			[]string{"0 passed, 1 failed, 0 skipped"},
		},
		{
			"what is no event is passed on",
			"go: downloading\n",
			[]string{"go: downloading\n", "0 passed, 0 failed, 0 skipped"},
		},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			var b strings.Builder
			tally := newTally(&b)
			if err := tally.read(strings.NewReader(c.events)); err != nil {
				t.Fatal(err)
			}
			tally.summary()
			for _, want := range c.want {
				if !strings.Contains(b.String(), want) {
					t.Errorf("no %q in:\n%s", want, b.String())
				}
			}
		})
	}
}

func TestSplit(t *testing.T) {
	got := split([]string{"--", "go", "test", "--", "go", "vet"})
	if len(got) != 2 || len(got[0]) != 2 || got[1][1] != "vet" {
		t.Errorf("split gave %q", got)
	}
}
