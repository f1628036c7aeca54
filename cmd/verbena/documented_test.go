package main

import (
	"errors"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// documents returns the documents that people read, by name.
func documents(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/adr/*.md", "../../examples/*/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			docs[strings.TrimPrefix(f, "../../")] = string(b)
		}
	}
	return docs
}

var (
	inline    = regexp.MustCompile("`([^`\n]+)`")
	separator = regexp.MustCompile(`\s(?:&&|\|\||[;|&])(?:\s|$)|;\s`)
	redirect  = regexp.MustCompile(`\s\d?>.*$`)
)

// commandsOf returns the commands of verbena that a line of a shell has: what follows the
// word verbena, up to the end of each.
func commandsOf(line string) (cmds []string) {
	line, _, _ = strings.Cut(line+" ", " #")
	for _, c := range separator.Split(line+" ", -1) {
		c = " " + strings.TrimSpace(c)
		c = strings.NewReplacer("go run ./cmd/verbena", "verbena", "exec verbena", "verbena").Replace(c)
		if i := strings.Index(c, " verbena "); i >= 0 && !strings.Contains(c[:i], "|") {
			cmds = append(cmds, redirect.ReplaceAllString(c[i+len(" verbena "):], ""))
		}
	}
	return cmds
}

// parses parses a command line as the program does, but for what is left out in a
// document: words with an ellipsis or a variable. whole says that arguments are counted.
func parses(line string, whole bool) error {
	if whole {
		whole = !strings.ContainsAny(line, "…$")
	}
	abbreviated := strings.Contains(line, "…")
	if !whole {
		line = strings.NewReplacer("[", "", "]", "", `\|`, " ").Replace(line)
	}
	words := slices.DeleteFunc(shellWords(strings.ReplaceAll(line, `"`, "'")), func(w string) bool {
		return strings.HasPrefix(w, "…") || strings.HasPrefix(w, "$")
	})
	for i, w := range words {
		if !whole && w == strings.ToUpper(w) && strings.Trim(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
			words[i] = "1" // N, PORT: whatever the flag takes
		}
	}
	root := app{in: strings.NewReader(""), out: io.Discard, err: io.Discard}.root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	strict(root)
	cmd, args, err := root.Find(words)
	if err != nil {
		return err
	}
	if cmd == root && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		return noCommand(root, words[0])
	}
	if cmd.DisableFlagParsing {
		return nil
	}
	err = cmd.ParseFlags(args)
	if err != nil && abbreviated { // `perf … --queues`: of one of them
		for _, sub := range cmd.Commands() {
			if sub.ParseFlags(args) == nil {
				return nil
			}
		}
	}
	var none *pflag.ValueRequiredError
	switch {
	case err != nil && !whole && errors.As(err, &none): // `snapshot --listen`, the flag as such
		return nil
	case err != nil:
		return err
	case whole:
		return cmd.ValidateArgs(cmd.Flags().Args())
	}
	return nil
}

// Every command line of verbena in a document has a command, flags and arguments that the
// program takes: in blocks of code whole, within a sentence as far as it is written out.
func TestDocumentedCommands(t *testing.T) {
	n := 0
	for name, text := range documents(t) {
		if name == "CHANGELOG.md" { // what was, too
			continue
		}
		in, sh := false, false
		for line := range strings.Lines(text) {
			if fence, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
				in, sh = !in, fence == "sh" || fence == "" || fence == "console"
				continue
			}
			if in && sh {
				for _, c := range commandsOf(line) {
					n++
					if err := parses(c, true); err != nil {
						t.Errorf("%s: %s: %v", name, strings.TrimSpace(line), err)
					}
				}
			}
			if in {
				continue
			}
			for _, m := range inline.FindAllStringSubmatch(line, -1) {
				for _, c := range commandsOf(m[1]) {
					n++
					if err := parses(c, false); err != nil {
						t.Errorf("%s: %s: %v", name, m[0], err)
					}
				}
			}
			// Tables of commands: `devinfo [-d DEV] [-l]`.
			if cell, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |"); ok && (name == "docs/listings.md" || name == "docs/sim.md") {
				for _, m := range inline.FindAllStringSubmatch(cell, -1) {
					if first, _, _ := strings.Cut(m[1], " "); isCommand(first) {
						n++
						if err := parses(m[1], false); err != nil {
							t.Errorf("%s: %s: %v", name, m[0], err)
						}
					}
				}
			}
		}
	}
	if n < 150 {
		t.Errorf("only %d commands were found", n)
	}
}

// isCommand reports whether verbena has a command of a name.
func isCommand(name string) bool {
	root := app{in: strings.NewReader(""), out: io.Discard, err: io.Discard}.root()
	root.InitDefaultCompletionCmd()
	return slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name || c.HasAlias(name) })
}

// othersFlags are flags that documents name and that are not of verbena.
var othersFlags = []string{"--short"}

// Every flag that a document names alone is one of some command.
func TestDocumentedFlags(t *testing.T) {
	have := map[string]bool{}
	everyCommand(func(c *cobra.Command, _ []string) {
		c.InitDefaultHelpFlag()
		c.Flags().VisitAll(func(f *pflag.Flag) { have["--"+f.Name] = true })
	})
	flag := regexp.MustCompile("`(--[a-zA-Z][-_a-zA-Z0-9]*)[^`\n]*`")
	n := 0
	for name, text := range documents(t) {
		if strings.HasPrefix(name, "docs/adr/") || name == "CHANGELOG.md" || name == "docs/spec-coverage.md" {
			continue
		}
		for _, m := range flag.FindAllStringSubmatch(text, -1) {
			n++
			if !have[m[1]] && !slices.Contains(othersFlags, m[1]) {
				t.Errorf("%s: %s: no command has it", name, m[0])
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d flags were found", n)
	}
}

// What the program says about itself names commands that there are: "run verbena probe
// there". The texts are Go's literals, the rules of the doctor and the pages.
func TestNamedCommandsExist(t *testing.T) {
	named := regexp.MustCompile(`\bverbena ([a-z][-_a-z]+)`)
	n := 0
	check := func(where, text string) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			n++
			if !isCommand(m[1]) && !slices.Contains([]string{"or", "on", "has"}, m[1]) { // sentences
				t.Errorf("%s: %q: there is no such command", where, m[0])
			}
		}
	}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git" || d.Name() == "out"):
			return fs.SkipDir
		case d.IsDir(), strings.HasSuffix(path, "_test.go"):
			return nil
		}
		ext := filepath.Ext(path)
		if ext != ".go" && ext != ".yaml" && ext != ".js" && ext != ".html" {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if ext != ".go" {
			check(path, string(b))
			return nil
		}
		var s scanner.Scanner
		set := token.NewFileSet()
		s.Init(set.AddFile(path, -1, len(b)), b, nil, 0)
		for {
			_, tok, lit := s.Scan()
			if tok == token.EOF {
				return nil
			}
			if tok == token.STRING {
				check(path, lit)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 30 {
		t.Errorf("only %d commands were named", n)
	}
}
