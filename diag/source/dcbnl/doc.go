// Package dcbnl asks the kernel for data-center bridging of an interface: PFC, ETS,
// the application table, trust, buffers, rate limits and who negotiates (DCBX).
//
// It owns the layouts of RTM_GETDCB (uapi linux/dcbnl.h) and has no message that sets
// anything. A driver without DCB answers EOPNOTSUPP. Called by diag/source.
package dcbnl
