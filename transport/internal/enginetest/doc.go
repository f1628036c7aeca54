// Package enginetest is for tests of engines: a [Node] is one queue pair with
// its memory, its queues and a sink that writes down what the engine reports.
// Packets go between nodes as bytes, through the encoder and decoder of package
// wire, and a test loses, doubles or reorders them as it likes.
package enginetest
