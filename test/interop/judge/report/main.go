// Command report prints which judges were heard in a test run, from the account that $VERBENA_JUDGE_LOG names. It
// says and does not decide: its exit status tells only whether the account could be read.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/verbena-rdma/verbena/test/interop/judge"
)

func main() {
	text, err := os.ReadFile(os.Getenv("VERBENA_JUDGE_LOG"))
	if errors.Is(err, fs.ErrNotExist) { // no test asked for any
		err = nil
	}
	if err == nil {
		err = judge.Report(strings.NewReader(string(text)), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}
