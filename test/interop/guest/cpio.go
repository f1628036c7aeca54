package guest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// cpioWriter writes the "newc" archive that the kernel unpacks as its first file system. Directories above a file
// are made as needed; a path is written once, later ones are left out.
type cpioWriter struct {
	w    io.Writer
	n    int64
	ino  int
	have map[string]bool
	err  error
}

func newCPIO(w io.Writer) *cpioWriter { return &cpioWriter{w: w, have: map[string]bool{}} }

func (c *cpioWriter) write(p []byte) {
	if c.err != nil {
		return
	}
	n, err := c.w.Write(p)
	c.n += int64(n)
	c.err = err
}

func (c *cpioWriter) pad() {
	if r := c.n % 4; r != 0 {
		c.write(make([]byte, 4-r))
	}
}

func (c *cpioWriter) entry(path string, mode uint32, data []byte) {
	name := strings.TrimPrefix(path, "/")
	if c.have[name] {
		return
	}
	c.have[name] = true
	if dir := filepath.Dir(name); dir != "." && name != "TRAILER!!!" {
		c.dir(dir)
	}
	c.ino++
	c.write(fmt.Appendf(nil, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		c.ino, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0))
	c.write(append([]byte(name), 0))
	c.pad()
	c.write(data)
	c.pad()
}

func (c *cpioWriter) dir(path string)               { c.entry(path, 0o040755, nil) }
func (c *cpioWriter) file(path string, data []byte) { c.entry(path, 0o100644, data) }
func (c *cpioWriter) program(path string, b []byte) { c.entry(path, 0o100755, b) }
func (c *cpioWriter) symlink(path, to string)       { c.entry(path, 0o120777, []byte(to)) }

// copyFile adds a file of the host, following symbolic links, under the same path.
func (c *cpioWriter) copyFile(path string) {
	if c.err != nil {
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		c.err = err
		return
	}
	c.program(path, data)
}

// close writes the trailer and returns the first error of all.
func (c *cpioWriter) close() error {
	c.entry("TRAILER!!!", 0, nil)
	return c.err
}
