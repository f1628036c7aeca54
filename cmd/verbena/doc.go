// Command verbena is the one program of this project, under many names.
//
// Each subcommand is a file of its own that returns a [cobra.Command]; the
// list of them is in commands.go. A program that is called ib_write_bw,
// ibv_rc_pingpong, ibv_devices or ibv_devinfo behaves as that program: names.go
// maps names to subcommands and `verbena install-tools DIR` makes the links.
//
// Every failure is one line on standard error and exit status 1. With --json
// standard output is one JSON document, failures included.
package main
