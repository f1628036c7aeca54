//go:build !race

package rc_test

const raceDetector = false
