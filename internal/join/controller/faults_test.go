package controller_test

import (
	"net/http"
	"strings"
	"sync"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// faults makes requests to an API server fail.
type faults struct {
	mu   sync.Mutex
	path string
}

// fail makes every request fail whose path contains the given part; empty: none.
func (f *faults) fail(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.path = path
}

func (f *faults) of(r *http.Request) fakeapiserver.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path != "" && strings.Contains(r.URL.Path, f.path) {
		return fakeapiserver.Unavailable
	}
	return fakeapiserver.NoFault
}
