// Package iptables reads the filter tables of legacy iptables and ip6tables from the
// kernel, as the getsockopt interface has them (uapi linux/netfilter_ipv4/ip_tables.h and
// netfilter_ipv6/ip6_tables.h), and writes them as iptables-save and ip6tables-save do.
//
// It owns the layout of those structures. It only asks, and only for a table that
// /proc/net/ip_tables_names or ip6_tables_names lists: asking for another would load a module of the kernel.
// Rules that iptables-nft made are not here but in nftables, which diag/source/nft
// reads. Whatever the kernel answers, a rule is read within its bounds, and jumps within
// the table; a match that is not understood is written as "-m NAME --unknown".
// Called by diag/source.
//
// Reading order: read_linux.go (asking), table.go (layout).
package iptables
