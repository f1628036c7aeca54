// Package anonymise is a source that hides who a host is: IP addresses, MAC
// addresses, GUIDs and host names are replaced, in files, answers, logs and values of
// variables alike, and always by the same.
//
// What a judgement needs stays true. Addresses of one subnet stay in one subnet,
// whatever its length; private, link-local, loopback and multicast addresses stay what
// they are (the first byte of an IPv4 address and the first two of an IPv6 address
// stay too); an IPv4 address inside a GID is that address. The vendor's half of a MAC
// address stays, and the GUID, GID or IPv6 address that is made of a MAC address is
// made of the new one. Versions of firmware are no addresses.
//
// The replacement follows from a key: two hosts that are recorded with one key can
// still be compared; without the key nothing leads back. Names of other hosts are
// known only where NCCL and UCX print them in a log. Called by the snapshot command.
//
// Reading order: source.go, text.go (what is replaced), addr.go (by what).
package anonymise
