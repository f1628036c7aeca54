package main

import "github.com/spf13/cobra"

// commands makes the subcommands of verbena, in the order of help.
var commands = []func(app) *cobra.Command{
	app.demoCommand,
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
	app.topCommand,
	app.pingpongCommand,
	app.perfCommand,
	app.faultCommand,
	app.simCommand,
	app.probeCommand,
	app.doctorCommand,
	app.snapshotCommand,
	app.exporterCommand,
	app.monitorCommand,
	app.decodeCommand,
	app.installToolsCommand,
	app.versionCommand,
}
