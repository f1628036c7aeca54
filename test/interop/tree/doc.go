// Package tree has Debian's programs and ours read the same trees of sysfs, each bound over /sys in a mount
// namespace of its own, and wants the same bytes and exit statuses of both: ibstat and ibv_devices of hosts that
// no machine here is, with NICs of several makers, InfiniBand, iWARP, several ports, and files that are missing,
// refused, cut, binary or giant.
//
// It owns the trees (testdata) and the namespace; it must not change the host: all mounts end with the process that
// made them. Nothing is judged against what we printed ourselves. It is tests only.
//
// A tree is text: "@ DIRECTORY" below /sys, then lines "name = content", "name ! ERRNO" (EINVAL, EACCES: a file
// that exists and is refused), "name > target" (a symbolic link); \n in content ends a line.
//
// Read plant_test.go, space_test.go, ibstat_test.go, odd_test.go, verbs_test.go.
package tree
