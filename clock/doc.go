// Package clock owns the unit of time: an int64 count of nanoseconds on a
// monotonic scale, so that protocol code can be run by a real driver and by a
// simulator alike.
//
// Engines receive a [Time] with every call and return deadlines as values;
// only a driver or a simulator owns a [Clock]. This is the one package that
// may read the operating system's clock.
//
// Read clock.go, then real.go.
package clock
