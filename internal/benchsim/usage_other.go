//go:build !unix

package benchsim

import "time"

// processCPU returns 0: it is not known here.
func processCPU() time.Duration { return 0 }
