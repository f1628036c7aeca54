// Package verbs is what a Go application holds: devices, protection domains,
// memory regions, completion queues, queue pairs and address handles of a
// software RNIC that lives in this process.
package verbs
