package main

import "github.com/spf13/cobra"

// groups are the subcommands of verbena as help lists them.
var groups = []struct {
	title    string
	commands []func(app) *cobra.Command
}{
	{"Try it, and measure:", []func(app) *cobra.Command{
		app.demoCommand,
		app.pingpongCommand,
		app.perfCommand,
		app.faultCommand,
		app.probeCommand,
		app.decodeCommand,
		app.installToolsCommand,
	}},
	{"Simulate a network:", []func(app) *cobra.Command{
		app.simCommand,
	}},
	{"What is wrong with this host, or a recorded one:", []func(app) *cobra.Command{
		app.doctorCommand,
		app.snapshotCommand,
		app.topCommand,
		app.monitorCommand,
		app.exporterCommand,
	}},
	{"Listings:", []func(app) *cobra.Command{
		app.devicesCommand,
		app.devinfoCommand,
		app.gidCommand,
		app.ibstatCommand,
		app.rdmaCommand,
		app.showGIDsCommand,
		app.perfqueryCommand,
		app.roceModeCommand,
		app.nicStatsCommand,
		app.flowHashCommand,
		app.qosCommand,
		app.pfcCommand,
	}},
	{"Other commands:", []func(app) *cobra.Command{
		app.versionCommand,
	}},
}

// lastGroup is where the commands about commands are.
func lastGroup() string { return groups[len(groups)-1].title }
