package main

import (
	"fmt"
	"slices"
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
