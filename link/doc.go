// Package link defines how frames enter and leave a process: the interface
// [Link] and its capabilities. Implementations are the packages below it.
package link
