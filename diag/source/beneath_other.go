//go:build !linux

package source

import "os"

// beneath is openat2(2), which only Linux has.
type beneath struct{}

func openBeneath(string) *beneath { return nil }

func (*beneath) close() {}

func (*beneath) readFile(string, int) ([]byte, error) { return nil, errUnsure }

func (*beneath) openDir(string) (*os.File, error) { return nil, errUnsure }

func (*beneath) names(string) ([]string, error) { return nil, errUnsure }

func (*beneath) readLink(string) (string, error) { return "", errUnsure }
