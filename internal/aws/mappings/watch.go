package mappings

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/node-authorizer/node-authorizer/internal/informer"
)

// followObjects calls read with all objects after the first list and after every change. Remedy says what to do
// without permission to read them.
func followObjects[L runtime.Object](ctx context.Context, s *source, from informer.Source[L], remedy string, read func(cache.Store)) {
	copied := informer.New(from, s.age, nil)
	changed := make(chan struct{}, 1)
	notify := func(any) {
		select {
		case changed <- struct{}{}:
		default: // a change is already signaled
		}
	}
	copied.Changed, copied.Deleted = []func(any){notify}, []func(any){notify}
	copied.Listed = func() { notify(nil) }
	copied.Reached = func(err error) {
		if err != nil {
			err = fmt.Errorf("%w; %s", err, remedy)
		}
		s.unreachable(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		copied.Run(ctx)
	}()
	defer func() { <-done }()
	for {
		select {
		case <-changed:
			read(copied)
		case <-ctx.Done():
			return
		}
	}
}
