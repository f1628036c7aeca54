package rdmacm

import (
	"time"

	"github.com/verbena-rdma/verbena/cm"
	"github.com/verbena-rdma/verbena/verbs"
)

// OpenTimewait is Open with another time for which ended connections are
// remembered, so that tests need not wait as long.
func OpenTimewait(dev *verbs.Device, d time.Duration) (*Manager, error) {
	return open(dev, cm.Config{Timewait: d})
}
