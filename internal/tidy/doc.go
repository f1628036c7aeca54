// Package tidy holds the tests that keep the house in order: which package may
// import which, what the pure packages may call, that every package says what
// it is for. It has no code of its own.
package tidy
