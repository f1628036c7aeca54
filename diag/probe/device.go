package probe

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxGIDs bounds the rows of a GID table that are looked at.
const maxGIDs = 4096

// devicesOf lists the RDMA devices that have an address in their GID table
// (IBA vol.1 annex A17.5.1), as sysfs shows them. What cannot be read is
// passed over.
func devicesOf(sysfs string, addr netip.Addr) []Device {
	dir := filepath.Join(sysfs, "class", "infiniband")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var found []Device
	for _, d := range entries {
		if len(found) >= maxNotices {
			break
		}
		dev := filepath.Join(dir, d.Name())
		if !hasGID(dev, addr.WithZone("")) {
			continue
		}
		// Software devices of the kernel (rxe, siw) say on which interface they ride.
		_, err := os.Stat(filepath.Join(dev, "parent"))
		found = append(found, Device{Name: d.Name(), Hardware: err != nil})
	}
	return found
}

func hasGID(dev string, addr netip.Addr) bool {
	ports, _ := os.ReadDir(filepath.Join(dev, "ports"))
	for _, p := range ports {
		dir := filepath.Join(dev, "ports", p.Name(), "gids")
		rows, _ := os.ReadDir(dir)
		rows = rows[:min(len(rows), maxGIDs)]
		if slices.ContainsFunc(rows, func(r os.DirEntry) bool {
			b, err := os.ReadFile(filepath.Join(dir, r.Name()))
			if err != nil {
				return false
			}
			gid, err := netip.ParseAddr(strings.TrimSpace(string(b)))
			return err == nil && gid.Unmap() == addr.Unmap()
		}) {
			return true
		}
	}
	return false
}
