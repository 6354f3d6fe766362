package source

import (
	"os"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// TestMain takes out client-go's handlers of errors. One of them sleeps until a
// moment after the last error of the process, which in the bubble of another test
// may be years away.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}
