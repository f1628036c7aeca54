package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

func main() { os.Exit(start()) }

// start runs the program that the process was called as.
func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	status := make(chan int, 1)
	go func() { status <- run(ctx, app{in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.Args) }()
	select {
	case s := <-status:
		return s
	case <-ctx.Done():
	}
	select {
	case s := <-status:
		return s
	case <-time.After(ending): // it waits for a pipe that nobody writes to
		fmt.Fprintf(os.Stderr, "%s: interrupted\n", filepath.Base(os.Args[0]))
		return 130
	}
}

// ending is how long a command that is interrupted may take to end: a simulation reports
// what has happened so far.
const ending = 20 * time.Second

// app is what a command may use of the process.
type app struct {
	in       io.Reader
	out, err io.Writer
}

// run runs a command line, the program's name included, and returns the exit
// status.
func run(ctx context.Context, a app, args []string) int {
	out := &counter{w: a.out}
	a.out = out
	root, rest := a.program(args)
	root.SetArgs(rest)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SilenceErrors, root.SilenceUsage = true, true
	if root.HasSubCommands() {
		help := helpCommand()
		if root.ContainsGroup(lastGroup()) {
			help.GroupID = lastGroup()
		}
		root.SetHelpCommand(help)
		root.InitDefaultHelpCmd()
		root.InitDefaultCompletionCmd(rest...)
	}
	strict(root)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = out.err
	}
	var quiet *quietError
	status := 1
	if e := (*statusError)(nil); errors.As(err, &e) {
		status = e.status
	}
	switch {
	case err == nil:
		return 0
	case errors.As(err, &quiet):
		return quiet.status
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(a.err, "%s: interrupted\n", cmd.CommandPath())
		return 130
	}
	fmt.Fprintf(a.err, "%s: %s\n", cmd.CommandPath(), oneLine(err.Error()))
	if out.n == 0 && slices.Contains(rest, "--json") {
		_ = writeJSON(a.out, map[string]string{"program": cmd.CommandPath(), "error": oneLine(err.Error())})
	}
	return status
}

// counter counts what a command has written, and keeps the first error: no command
// ends well whose output was lost.
type counter struct {
	w   io.Writer
	n   int
	err error
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += n
	if err != nil && c.err == nil {
		c.err = err
	}
	return n, err
}

// quietError ends the program with a status and without a word: everything has
// been said.
type quietError struct{ status int }

func (e *quietError) Error() string { return fmt.Sprintf("exit status %d", e.status) }

// statusError is an error with an exit status of its own.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// oneLine joins the lines of a message.
func oneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r): // of a file, a peer or the command line
			return '?'
		}
		return r
	}, s)
}

// program returns the command that the process was called as, and its
// arguments.
func (a app) program(args []string) (*cobra.Command, []string) {
	if len(args) == 0 {
		args = []string{"verbena"}
	}
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	if c := a.toolCommand(name); c != nil {
		return c, args[1:]
	}
	return a.root(), args[1:]
}

// root returns the verbena command with all of its subcommands.
func (a app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "verbena",
		Short: "RDMA in software: devices, measurements and tools",
		Long: "Verbena is RDMA in software: RoCEv2 network adapters in user space, without privilege,\nand the programs that RDMA people type.\n\n" +
			"Begin with: verbena demo",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
		Version: versionLine(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, make := range g.commands {
			c := make(a)
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.SetCompletionCommandGroupID(lastGroup())
	return root
}
