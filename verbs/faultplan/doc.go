// Package faultplan owns fault plans: what is to go wrong, when, for whom, and
// what did. A plan is a Go value or a YAML file:
//
//	seed: 7
//	rules:
//	  - {name: lossy network, inject: lose, direction: both, probability: 1%}
//	  - {name: no memory, inject: fail, call: reg_mr, nth: 3, error: ENOMEM}
//	  - {name: bad completion, inject: fail, call: poll, nth: 10, status: RETRY_EXC_ERR}
//	  - {name: dying QP, inject: kill, qp: 1, after: 2s}
//
// Rules about packets become rules of link/fault around the device's link; rules
// about calls are asked by package verbs on each call. Each rule has its own
// random numbers from the plan's seed and its place: the same plan, seed and
// traffic give the same faults.
//
// The package opens no device and changes none: package verbs does, as an
// [Injector] says. It must never make a program without a plan slower.
//
// Read plan.go (what a plan is), names.go (the words), key.go (the keys of a
// file), parse.go (files), inject.go (a plan at work), report.go (what it did),
// schema.go.
package faultplan
