// Package guest boots Linux guests that have an rdma_rxe device, so that tests can hold our stack against an RDMA
// implementation that we did not write. It owns the guests, the network between them and the way commands reach
// them. It never judges: whether an exchange was right is for the test to say. Only tests of test/interop and the
// command guestnet call it.
//
//	network namespace "vrb-…", made by Start and removed by Close
//	┌──────────────────────────────────────────────────────────────────────────┐
//	│ host side 10.77.0.1/24, fd00:77::1/64 ── bridge vbr0, MTU 4200           │
//	│                                            ├─ vtap1 ─ guest 1: eth0 10.77.0.11, fd00:77::11, rxe0
//	│                                            └─ vtap2 ─ guest 2: eth0 10.77.0.12, fd00:77::12, rxe0
//	└──────────────────────────────────────────────────────────────────────────┘
//
// A guest is QEMU (TCG, no KVM needed) with Debian's kernel and an initramfs that is built once from the host's
// Debian packages and kept in the cache directory. Boot takes about ten seconds on an idle machine and more than a minute on
// a busy one; a boot that fails is tried again, a command never is. scripts/judges.sh brings everything that is
// needed; Available says what is missing.
//
// Host programs run on the host side with Net.Command; code of the test's own process opens its sockets there
// with Net.Do. Commands in a guest are run with Guest.Run or Guest.Background, each on a connection of its own.
// There is nothing to sleep for: wait with WaitListening, Proc.WaitOutput or Until.
//
// For trials by hand: go run ./test/interop/guest/cmd/guestnet help.
//
// Read net.go (Start, Close, Do, Command), then guest.go and proc.go (what one does to a guest), vm.go and
// console.go (how a guest boots), namespace.go (the network and its removal after a crash), initramfs.go, elf.go
// and modules.go (what a guest is made of), capture.go. The agent that runs inside is in agent/.
package guest
