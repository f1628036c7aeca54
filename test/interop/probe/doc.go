// Package probe holds verbena probe against networks that are broken on purpose
// by the kernel's own means: nftables drops, rejects, rewrites and translates,
// interfaces have small MTUs, tbf and htb limit. It has tests only. What each
// fault must be called is in the table of faults_test.go; that the probe finds
// nothing else is checked too.
//
//	a ── r ── q ── b     four network namespaces of each test; r and q route
//
// Read rig_test.go, then faults_test.go.
package probe
