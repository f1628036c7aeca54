package udp

import (
	"errors"

	"github.com/verbena-rdma/verbena/link"
)

func openPortable(Config) (link.Link, error) { return nil, errors.ErrUnsupported }
