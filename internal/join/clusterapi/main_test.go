package clusterapi_test

import (
	"os"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// TestMain removes client-go's error handlers. One of them sleeps relative to the
// last error of the process, which in the bubble of another test may be years away.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}
