// Package source answers what a reader of a host asks: files of sysfs and proc,
// and queries to the kernel that are no files.
//
// A [Source] never changes a host. [Live] is this host, read only and without
// helper programs; [Dir] is a recording; [Recorder] passes questions on and writes
// down question and answer, errors too, so that a recording answers a reader
// exactly as the host did.
//
// Bad input is bounded here: a file longer than [MaxFile] or a directory with more
// than [MaxEntries] entries is an error, a recording is read without leaving its
// directory.
package source
