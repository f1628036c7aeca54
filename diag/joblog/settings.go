package joblog

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Settings is what a program printed about its own choices. A value is known where the
// log says one and no other: that of several ranks that differ is not known.
type Settings struct {
	GIDIndex     snapshot.Value[int]
	TrafficClass snapshot.Value[int]
	PathMTU      snapshot.Value[int] // bytes
	Device       snapshot.Value[string]
}

// Choices that programs print. NCCL tells what its environment sets, and each
// connection; perftest has a table before it begins.
var (
	reSet    = regexp.MustCompile(`\b(NCCL|UCX|NVSHMEM)_IB_(GID_INDEX|TC|TRAFFIC_CLASS) set by environment to (\d{1,3})\b`)
	reNetIB  = regexp.MustCompile(`NET/IB.* qpn \d+ mtu \d .*\bGID (\d{1,3})\b`)
	reLocal  = regexp.MustCompile(`\blocal GID index (\d{1,3})\b`)
	reIndex  = regexp.MustCompile(`^\s*G[Ii][Dd] index\s+:\s+(\d{1,3})\s*$`)
	reMTU    = regexp.MustCompile(`^\s*Mtu\s+:\s+(\d{3,4})\[B\]`)
	reDevCol = regexp.MustCompile(`\bDevice\s+:\s+([a-z][0-9a-z_]{1,62})\s*$`)
)

// said gathers what lines say of one thing.
type said[T comparable] struct {
	value  T
	known  bool
	differ bool
}

func (s *said[T]) add(v T) {
	s.differ = s.differ || s.known && s.value != v
	s.value, s.known = v, true
}

func (s *said[T]) get() snapshot.Value[T] {
	if !s.known || s.differ {
		return snapshot.Value[T]{}
	}
	return snapshot.Known(s.value)
}

// Chosen reads what a program printed about its own choices.
func Chosen(lines []string) Settings {
	var index, class, mtu said[int]
	var dev said[string]
	for _, line := range lines {
		if len(line) > maxLine {
			line = line[:maxLine]
		}
		switch {
		case strings.Contains(line, "set by environment to"):
			if m := reSet.FindStringSubmatch(line); m != nil {
				to := &class
				if m[2] == "GID_INDEX" {
					to = &index
				}
				number(to, m[3])
			}
		case strings.Contains(line, "NET/IB"):
			match(&index, reNetIB, line)
			match(&index, reLocal, line)
		case strings.Contains(line, "GID index"), strings.Contains(line, "Gid index"):
			match(&index, reIndex, line)
			match(&index, reLocal, line)
		case strings.Contains(line, "Mtu"):
			match(&mtu, reMTU, line)
		case strings.Contains(line, "Device"):
			if m := reDevCol.FindStringSubmatch(line); m != nil {
				dev.add(m[1])
			}
		}
	}
	return Settings{GIDIndex: index.get(), TrafficClass: class.get(), PathMTU: mtu.get(), Device: dev.get()}
}

func match(s *said[int], re *regexp.Regexp, line string) {
	if m := re.FindStringSubmatch(line); m != nil {
		number(s, m[1])
	}
}

func number(s *said[int], text string) {
	if n, err := strconv.Atoi(text); err == nil {
		s.add(n)
	}
}
