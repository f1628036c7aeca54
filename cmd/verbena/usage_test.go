package main

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// full is a device without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

// everyCommand calls f for each command of verbena and each traditional name, with the
// words by which it is called.
func everyCommand(f func(c *cobra.Command, words []string)) {
	var walk func(c *cobra.Command, words []string)
	walk = func(c *cobra.Command, words []string) {
		f(c, words)
		for _, s := range c.Commands() {
			walk(s, append(words[:len(words):len(words)], s.Name()))
		}
	}
	a := app{out: full{}, err: full{}}
	walk(a.root(), []string{"verbena"})
	for _, t := range tools {
		f(t.make(a, t.name), []string{t.name})
	}
}

// No command ends well whose output was lost.
func TestLostOutputIsAnError(t *testing.T) {
	everyCommand(func(_ *cobra.Command, words []string) {
		var msg bytes.Buffer
		status := run(t.Context(), app{in: &bytes.Buffer{}, out: full{}, err: &msg}, append(words, "--help"))
		if status == 0 || strings.Count(msg.String(), "\n") != 1 || !strings.Contains(msg.String(), "no space") {
			t.Errorf("%v --help: status %d, %q", words, status, msg.String())
		}
	})
}

// A flag that is given and empty is a variable of a script that was not set: it is never
// taken for a flag that was not given. The exit status is that of a wrong flag.
func TestEmptyFlagsAreRefused(t *testing.T) {
	n := 0
	everyCommand(func(c *cobra.Command, words []string) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "string" || f.Name == "capture" || f.Name == "out" {
				return
			}
			n++
			var out, msg, wrong bytes.Buffer
			status := run(t.Context(), app{in: &bytes.Buffer{}, out: &out, err: &msg}, append(words[:len(words):len(words)], "--"+f.Name+"="))
			want := run(t.Context(), app{in: &bytes.Buffer{}, out: &out, err: &wrong}, append(words[:len(words):len(words)], "--no-such-flag"))
			if status != want || !strings.HasSuffix(msg.String(), ": --"+f.Name+" is given and empty\n") {
				t.Errorf("%v --%s=: status %d, want %d; %q", words, f.Name, status, want, msg.String())
			}
		})
	})
	if n < 100 {
		t.Errorf("only %d flags", n)
	}
}

// The doctor's statuses 0 to 3 speak of the host: a command line that is wrong has none
// of them.
func TestWrongArgumentsHaveTheStatusOfWrongFlags(t *testing.T) {
	everyCommand(func(c *cobra.Command, words []string) {
		var out, msg, wrong bytes.Buffer
		if c.Args == nil || c.DisableFlagParsing || c.Args(c, []string{"a", "b", "c", "d"}) == nil {
			return
		}
		status := run(t.Context(), app{in: &bytes.Buffer{}, out: &out, err: &msg}, append(words[:len(words):len(words)], "a", "b", "c", "d"))
		want := run(t.Context(), app{in: &bytes.Buffer{}, out: &out, err: &wrong}, append(words[:len(words):len(words)], "--no-such-flag"))
		if status != want || strings.Count(msg.String(), "\n") != 1 || out.Len() != 0 {
			t.Errorf("%v a b c d: status %d, want %d; %q", words, status, want, msg.String())
		}
	})
}

// A value that a flag cannot take is told with the flag, the value and what would do, and
// not in the words of Go's functions. All commands, all flags.
func TestWrongFlagValuesAreToldPlainly(t *testing.T) {
	n := 0
	everyCommand(func(c *cobra.Command, words []string) {
		if c.DisableFlagParsing {
			return
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			kind := f.Value.Type()
			if wanted(kind, strconv.ErrSyntax) == strconv.ErrSyntax.Error() { // text
				return
			}
			values := []string{"wrong"}
			if strings.HasPrefix(kind, "int") || strings.HasPrefix(kind, "uint") {
				values = append(values, "99999999999999999999999", "1.5", "0x", "5 ")
			}
			if strings.HasPrefix(kind, "uint") {
				values = append(values, "-1")
			}
			if kind == "duration" {
				values = append(values, "5", "99999999999999h", "-")
			}
			for _, v := range values {
				n++
				var out, msg, wrong bytes.Buffer
				status := run(t.Context(), app{in: &bytes.Buffer{}, out: &out, err: &msg}, append(words[:len(words):len(words)], "--"+f.Name+"="+v))
				want := run(t.Context(), app{in: &bytes.Buffer{}, out: &out, err: &wrong}, append(words[:len(words):len(words)], "--no-such-flag"))
				s := msg.String()
				if status != want || strings.Count(s, "\n") != 1 || !strings.Contains(s, " "+v+": must be a ") && !strings.Contains(s, " "+v+": must be true") ||
					!strings.Contains(s, ": --"+f.Name+" ") && !strings.Contains(s, ": -"+f.Shorthand+" ") || strings.Contains(s, "strconv") {
					t.Errorf("%v --%s=%s: status %d, want %d; %q", words, f.Name, v, status, want, s)
				}
			}
		})
	})
	if n < 100 {
		t.Errorf("only %d values", n)
	}
}

// A flag that is misspelt names the one that is meant, of all commands.
func TestMisspeltFlagsNameTheRightOne(t *testing.T) {
	n := 0
	everyCommand(func(c *cobra.Command, words []string) {
		if c.DisableFlagParsing {
			return
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			word := f.Name[:len(f.Name)-1] + "§" // a letter that no flag has
			if f.Hidden || len(f.Name) < 5 {
				return
			}
			n++
			var out, msg bytes.Buffer
			status := run(t.Context(), app{in: &bytes.Buffer{}, out: &out, err: &msg}, append(words[:len(words):len(words)], "--"+word+"=1"))
			if status == 0 || strings.Count(msg.String(), "\n") != 1 || strings.Count(msg.String(), "; did you mean --") != 1 {
				t.Errorf("%v --%s: status %d, %q", words, word, status, msg.String())
			}
		})
	})
	if n < 100 {
		t.Errorf("only %d flags", n)
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"shard", "shards", 1}, {"ab", "ba", 2}} {
		if letters(c.a, c.b) != c.want || letters(c.b, c.a) != c.want {
			t.Errorf("letters %q %q: %d and %d, want %d", c.a, c.b, letters(c.a, c.b), letters(c.b, c.a), c.want)
		}
	}
}
