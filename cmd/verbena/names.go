package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf/handshake"
)

// tools are the traditional names of our subcommands, and how the command of
// that name is made.
var tools = []struct {
	name string
	make func(a app, name string) *cobra.Command
}{
	{"ib_write_bw", perfTool(handshake.Write, false)},
	{"ib_write_lat", perfTool(handshake.Write, true)},
	{"ib_read_bw", perfTool(handshake.Read, false)},
	{"ib_read_lat", perfTool(handshake.Read, true)},
	{"ib_send_bw", perfTool(handshake.Send, false)},
	{"ib_send_lat", perfTool(handshake.Send, true)},
	{"ib_atomic_bw", perfTool(handshake.Atomic, false)},
	{"ib_atomic_lat", perfTool(handshake.Atomic, true)},
	{"ibv_rc_pingpong", pingpongTool(ib.RC)},
	{"ibv_uc_pingpong", pingpongTool(ib.UC)},
	{"ibv_ud_pingpong", pingpongTool(ib.UD)},
	{"ibv_devices", func(a app, name string) *cobra.Command { return named(a.devicesCommand(), name) }},
	{"ibv_devinfo", func(a app, name string) *cobra.Command { return wrongFlags(named(a.devinfoCommand(), name), 255) }},
	{"ibstat", func(a app, name string) *cobra.Command {
		return wrongFlags(named(a.ibstatCommand(), name+" [CA [PORT]]"), 2)
	}},
	{"rdma", func(a app, _ string) *cobra.Command { return a.rdmaCommand() }},
	{"show_gids", func(a app, name string) *cobra.Command { return named(a.showGIDsCommand(), name+" [DEV [PORT]]") }},
	{"perfquery", func(a app, name string) *cobra.Command { return wrongFlags(named(a.perfqueryCommand(), name), 2) }},
	{"cma_roce_mode", func(a app, name string) *cobra.Command { return named(a.roceModeCommand(), name) }},
	{"mlnx_qos", func(a app, name string) *cobra.Command { return named(a.qosCommand(), name+" -i IF") }},
}

func perfTool(v handshake.Verb, latency bool) func(app, string) *cobra.Command {
	return func(a app, name string) *cobra.Command { return a.testCommand(v, latency, name) }
}

func pingpongTool(t ib.QPType) func(app, string) *cobra.Command {
	return func(a app, name string) *cobra.Command { return a.pingpongOf(t, name) }
}

func named(c *cobra.Command, name string) *cobra.Command {
	c.Use = name
	return c
}

// toolCommand returns the command of a traditional name, nil if it is none.
func (a app) toolCommand(name string) *cobra.Command {
	for _, t := range tools {
		if t.name == name {
			return t.make(a, name)
		}
	}
	return nil
}

func (a app) installToolsCommand() *cobra.Command {
	var force, uninstall bool
	cmd := &cobra.Command{
		Use:   "install-tools DIR",
		Short: "Link the traditional names (ib_write_bw, ibv_devinfo …) to this program",
		Long: "Makes a symbolic link in DIR for each traditional name. A program called by one of these\n" +
			"names behaves as the original: its options, its handshake, its output.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("name one directory, for example %s", filepath.Join("~", ".local", "bin"))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if uninstall {
				return a.uninstallTools(args[0])
			}
			return a.installTools(args[0], force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace what has one of the names already")
	cmd.Flags().BoolVar(&uninstall, "uninstall", false, "remove the links that lead to this program, and nothing else")
	return cmd
}

// uninstallTools removes links of ours; what else has the names stays.
func (a app) uninstallTools(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	for _, t := range tools {
		link := filepath.Join(dir, t.name)
		if !leadsTo(link, self) && !left(link, self) {
			continue
		}
		if err := os.Remove(link); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "removed %s\n", link)
	}
	return nil
}

func leadsTo(link, program string) bool {
	at, err := os.Readlink(link)
	return err == nil && at == program
}

// left reports whether a link led to this program before it was moved: to a file of its
// name that is no more.
func left(link, program string) bool {
	at, err := os.Readlink(link)
	if err != nil || filepath.Base(at) != filepath.Base(program) {
		return false
	}
	_, err = os.Stat(link)
	return os.IsNotExist(err)
}

func (a app) installTools(dir string, force bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if strings.HasPrefix(self, filepath.Join(os.TempDir(), "go-build")) {
		return errors.New("this program was started by go run and goes with it: build it first, with go install or go build")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var made, kept []string
	for _, t := range tools {
		link := filepath.Join(dir, t.name)
		if leadsTo(link, self) {
			made = append(made, t.name)
			continue
		}
		if _, err := os.Lstat(link); err == nil {
			if !force && !left(link, self) {
				kept = append(kept, t.name)
				continue
			}
			if err := os.Remove(link); err != nil {
				return err
			}
		}
		if err := os.Symlink(self, link); err != nil {
			return err
		}
		made = append(made, t.name)
	}
	slices.Sort(made)
	for _, n := range made {
		fmt.Fprintf(a.out, "%s -> %s\n", filepath.Join(dir, n), self)
	}
	if len(kept) > 0 {
		return fmt.Errorf("%s has %d of the names already, the first is %s: nothing was replaced; --force replaces", dir, len(kept), kept[0])
	}
	return nil
}
