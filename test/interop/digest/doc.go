// Package digest holds simulated runs against themselves on another kind of processor: the program in run is built for
// this machine and for arm64, which fuses multiplications with additions where amd64 does not, and the arm64 build runs
// under Debian's qemu-user. Same seed, same bytes: of every run the digest, the results, what explains them and the
// captures must be equal.
//
// Read run/main.go (what is run and written), then digest_test.go.
package digest
