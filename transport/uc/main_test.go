package uc_test

import (
	"testing"

	"github.com/verbena-rdma/verbena/transport/internal/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, 4) } // operations of a send queue
