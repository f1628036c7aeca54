// Package topo owns the shape of a fabric: nodes, ports and links, the
// generators of the usual shapes, the routes that equal-cost multipath leaves
// open at every switch, and the files in which other simulators keep theirs.
//
// It says who is connected to whom and which ways lead where; which of several
// equal ways a packet takes is the switch's choice. It never moves a packet,
// draws a random number or touches a file: readers take an io.Reader.
//
// Scenarios choose a shape (Star, SpineLeaf, FatTree, ...; each is a struct
// that validates itself and builds a Graph), the fabric makes its nodes from
// the Graph, and switches ask Routes for every packet:
//
//	shape or file ── Graph ── Routes ── ports of a switch towards an endpoint
//
// An endpoint is one port of one NIC. Routes are kept by switch and leaf, not
// by host: a fat tree of 11,664 hosts needs 5 MB.
//
// Read graph.go, build.go, shape.go and a shape (star.go, spineleaf.go,
// threetier.go, rail.go, chain.go, bounce.go, explicit.go); routes.go,
// static.go, path.go; subnet.go, name.go; then the files, hpcc.go and htsim.go.
package topo
