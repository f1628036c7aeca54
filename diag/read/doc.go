// Package read turns what a source answers into a snapshot.
//
// [Host] never fails. A file or an answer that cannot be read, or holds nonsense,
// costs the one value that it is: the value says why, and so does a row of the
// snapshot's problems. What a host does not have is absent and no problem. Neither is
// what is expected to be refused: the speed of an interface that is down, an operation
// that a driver does not have.
//
// Memory and time are bounded for any source: so many rows of an answer, so many
// questions and bytes for a snapshot, so many problems. Text that reaches a terminal
// or a page has no control characters.
//
// The package must not open files or sockets: it asks a [source.Source]. Called by
// the commands, the exporter and the doctor's command.
//
// Reading order: host.go, reader.go (one file, one value), answer.go (one query),
// device.go, port.go, pci.go, resource.go, netdev.go, dcb.go, system.go, app.go.
package read
