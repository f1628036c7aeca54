// Package source answers what a reader of a host asks: files of sysfs and proc,
// and queries to the kernel that are no files.
//
// A [Source] never changes a host. [Live] is this host, read only and without
// helper programs; a [Recording] is a directory with one source for each instant;
// [Recorder] passes questions on and writes down question and answer, errors too,
// so that a recording answers a reader exactly as the host did.
//
//	DIR/meta.json                 version, instants, host
//	DIR/t0/root/<path>            a file as read
//	DIR/t0/root/<path>.link       the target of a symbolic link
//	DIR/t0/root/<path>.err        why a file or directory could not be read: EINVAL
//	DIR/t0/nl/<query>.json, .err  answers to queries
//	DIR/t0/app.json, log.txt      written by hand instead of nl/app.json
//	DIR/t0/switch/*.txt           what a switch printed, instead of nl/switch.json
//	DIR/t1/…                      the same, later
//
// What is in none of these files is not on the host. A directory has the names that
// are below it, without the endings.
//
// Bad input is bounded here: a file longer than [MaxFile], an answer longer than
// [MaxAnswer] or a directory with more than [MaxEntries] entries is an error; what
// is no regular file is not opened, no symbolic link of a recording is followed, and
// nothing leaves the directory.
//
// Packages below this one are the clients of the kernel: nldev (RDMA), rtnl
// (addresses, routes), dcbnl, ethtool, nft. They return the types of snapshot.
//
// Reading order: source.go, query.go, failure.go, recording.go, find.go, tree.go, archive.go,
// recorder.go, live.go.
package source
