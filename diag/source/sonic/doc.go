// Package sonic reads what a SONiC switch prints: show pfc counters and show pfcwd
// stats, as text saved in files that are named after the command.
//
// It owns the two layouts and nothing else. It never fails on a line that it does not
// know: switches print headings, rulers and notes between rows. A row that starts like
// one and has a number that is none is an error with its place. Called by
// diag/source.
package sonic
