// Package faulttest shows how a user's own test injects faults: its counter
// must count exactly once whatever the network loses, and the test loses
// precisely the packets that could break that.
//
//	go test ./examples/faulttest
package faulttest
