// Package netns gives a test network namespaces of its own, inside one process:
// what [Space.Do] runs is in the namespace, and sockets made there stay there.
// Nothing has a name on the host, and all goes with the test.
//
// It needs root; without, tests skip by name.
package netns
