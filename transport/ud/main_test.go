package ud_test

import (
	"testing"

	"github.com/verbena-rdma/verbena/transport/internal/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, 2) } // operations of a send queue
