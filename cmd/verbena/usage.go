package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// mayBeEmpty are the flags for which an empty value means something.
var mayBeEmpty = []string{"capture", "out"}

// strict has all commands of a tree say in one way what is wrong with a command line:
// what was given, what is wanted, and the exit status that they give to wrong flags.
func strict(c *cobra.Command) {
	check := c.Args
	c.Args = func(cmd *cobra.Command, args []string) error {
		err := emptyFlag(cmd)
		if err == nil && check != nil {
			err = argsError(cmd, args, check(cmd, args))
		}
		if err == nil {
			err = missingFlag(cmd)
		}
		if err == nil {
			return nil
		}
		return cmd.FlagErrorFunc()(cmd, err)
	}
	given := c.FlagErrorFunc()
	c.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return given(cmd, flagError(cmd, err)) })
	if !c.Runnable() { // cobra's own, which takes any word
		c.Args = cobra.NoArgs
		c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		strict(c)
		return
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
}

// argsError puts what cobra says about arguments in terms of the command.
func argsError(cmd *cobra.Command, args []string, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	switch {
	case strings.HasPrefix(text, "unknown command ") && cmd.HasAvailableSubCommands():
		return noCommand(cmd, args[0])
	case strings.HasPrefix(text, "unknown command "):
		return fmt.Errorf("takes no arguments, got %q (see --help)", args[0])
	case strings.HasPrefix(text, "accepts "), strings.HasPrefix(text, "requires at least "):
		return fmt.Errorf("got %s, want: %s", count(len(args), "argument"), useLine(cmd))
	}
	return err
}

// noCommand says that there is no such subcommand, and which one may be meant.
func noCommand(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return fmt.Errorf("there is no command %q; did you mean %s?", name, strings.Join(near, " or "))
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if len(names) > 8 {
		return fmt.Errorf("there is no command %q; %s --help lists them", name, cmd.CommandPath())
	}
	return fmt.Errorf("there is no command %q; there are: %s", name, strings.Join(names, ", "))
}

// emptyFlag refuses flags that are given and empty, as a variable of a script is that
// has not been set: to take them as not given would do something else than was asked.
func emptyFlag(cmd *cobra.Command) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && f.Value.Type() == "string" && f.Value.String() == "" && !slices.Contains(mayBeEmpty, f.Name) {
			err = fmt.Errorf("--%s is given and empty", f.Name)
		}
	})
	return err
}

// flagError puts what pflag says about flags, in terms of Go's functions, in terms of the
// flag: its name, the value, what would do.
func flagError(cmd *cobra.Command, err error) error {
	var bad *pflag.InvalidValueError
	var none *pflag.NotExistError
	switch {
	case errors.As(err, &bad):
		f := bad.GetFlag()
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand
		}
		return fmt.Errorf("%s %s: %s (see --help)", name, bad.GetValue(), wanted(f.Value.Type(), bad.Unwrap()))
	case errors.As(err, &none) && none.GetSpecifiedShortnames() == "":
		if near := nearFlag(cmd, none.GetSpecifiedName()); near != "" {
			// Without the cause: parents of the command have handlers, too.
			return fmt.Errorf("%s; did you mean --%s?", err.Error(), near)
		}
	}
	return err
}

// wanted says what values a flag of a type takes.
func wanted(kind string, cause error) string {
	most := map[string]string{"int": "63 bits", "int32": "31 bits", "int64": "63 bits", "uint": "64 bits", "uint64": "64 bits", "uint32": "32 bits", "uint16": "16 bits", "uint8": "8 bits"}[kind]
	switch {
	case most != "" && errors.Is(cause, strconv.ErrRange):
		return "must be a number of at most " + most
	case strings.HasPrefix(kind, "uint"):
		return "must be a whole number from 0"
	case most != "":
		return "must be a whole number"
	case kind == "float64" && errors.Is(cause, strconv.ErrRange):
		return "is too large"
	case kind == "float64":
		return "must be a number"
	case kind == "bool":
		return "must be true or false"
	case kind == "duration":
		return "must be a time with its unit, such as 10s or 500ms"
	}
	return cause.Error()
}

// nearFlag returns the flag of a command whose name differs from a word in up to two
// letters, "" if there is none.
func nearFlag(cmd *cobra.Command, word string) string {
	best, least := "", 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := letters(f.Name, word); !f.Hidden && d < least && d < len(word) {
			best, least = f.Name, d
		}
	})
	return best
}

// letters counts the letters to change, add or take away between two words (Levenshtein).
func letters(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := left
			if a[i] != b[j] {
				d = 1 + min(left, row[j], row[j+1])
			}
			left, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}

// missingFlag names the first flag that must be given and is not.
func missingFlag(cmd *cobra.Command) error {
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if must := f.Annotations[cobra.BashCompOneRequiredFlag]; err == nil && len(must) == 1 && must[0] == "true" && !f.Changed {
			err = fmt.Errorf("--%s is missing, want: %s", f.Name, useLine(cmd))
		}
	})
	return err
}

// useLine is how a command is called.
func useLine(cmd *cobra.Command) string { return strings.TrimSuffix(cmd.UseLine(), " [flags]") }

// helpCommand is help, which refuses topics that there are not.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND…]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, rest, err := cmd.Root().Find(args)
			if err != nil || topic == nil {
				return noCommand(cmd.Root(), args[0])
			}
			if len(rest) > 0 {
				if !topic.HasAvailableSubCommands() {
					return fmt.Errorf("%s has no commands, got %q", topic.CommandPath(), rest[0])
				}
				return noCommand(topic, rest[0])
			}
			topic.InitDefaultHelpFlag()
			return topic.Help()
		},
	}
}
