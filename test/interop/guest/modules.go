package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// bootModules are loaded in every guest, in this order, each after what it depends on.
var bootModules = []struct {
	name     string
	optional bool // may be missing, or refuse the processor
}{
	{"crc32_generic", true},
	{"crc32c_generic", true},
	{"crc32_pclmul", true},
	{"virtio_pci", false},
	{"virtio_net", false},
	{"ib_uverbs", false},
	{"ib_umad", false},
	{"rdma_ucm", false},
	{"rdma_rxe", false},
	{"sch_netem", true},
}

// module is a kernel module's file, as an absolute path inside the guest.
type module struct {
	path     string
	optional bool
}

// modules returns the boot modules with all that they depend on, in the order to load them.
func (k kernel) modules() ([]module, error) {
	dir := filepath.Join("lib/modules", k.release)
	text, err := os.ReadFile(filepath.Join(k.root, dir, "modules.dep"))
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.release, err)
	}
	needs := map[string][]string{} // path → paths
	paths := map[string]string{}   // name → path
	for line := range strings.Lines(string(text)) {
		path, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		needs[path] = strings.Fields(rest)
		paths[moduleName(path)] = path
	}
	builtin, err := os.ReadFile(filepath.Join(k.root, dir, "modules.builtin"))
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.release, err)
	}
	inside := map[string]bool{}
	for line := range strings.Lines(string(builtin)) {
		inside[moduleName(strings.TrimSpace(line))] = true
	}
	var out []module
	done := map[string]bool{}
	var add func(path string, optional bool)
	add = func(path string, optional bool) {
		if done[path] {
			return
		}
		done[path] = true
		for _, p := range needs[path] {
			add(p, optional)
		}
		out = append(out, module{filepath.Join("/", dir, path), optional})
	}
	for _, m := range bootModules {
		path, ok := paths[m.name]
		if !ok && !m.optional && !inside[m.name] {
			return nil, fmt.Errorf("kernel %s has no module %s", k.release, m.name)
		}
		if ok {
			add(path, m.optional)
		}
	}
	return out, nil
}

// moduleName is "rdma_rxe" for "kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko.xz".
func moduleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	return strings.ReplaceAll(name, "-", "_")
}
