package mappings

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// objects is a set of objects in an API server.
type objects struct {
	// example is an object of their type.
	example runtime.Object
	list    func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch   func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// remedy is what to do without permission to read them.
	remedy string
}

// followObjects calls read with all objects after the first list and after every change.
func (s *source) followObjects(ctx context.Context, o objects, read func(cache.Store)) {
	informer := cache.NewSharedIndexInformerWithOptions(s.reported(o), o.example,
		cache.SharedIndexInformerOptions{ObjectDescription: s.name})
	changed := make(chan struct{}, 1)
	notify := func(any) {
		select {
		case changed <- struct{}{}:
		default: // a change is already signaled
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: notify, UpdateFunc: func(_, object any) { notify(object) }, DeleteFunc: notify,
	})
	if err != nil {
		s.unreachable(fmt.Errorf("follow: %w", err))
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	defer func() { <-done }()
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return
	}
	for {
		read(informer.GetStore())
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// reported lists and watches, and reports errors.
func (s *source) reported(o objects) *cache.ListWatch {
	note := func(ctx context.Context, err error) {
		switch {
		case err == nil:
			s.unreachable(nil)
		case ctx.Err() == nil:
			s.unreachable(fmt.Errorf("%w; %s", err, o.remedy))
		}
	}
	followed := s.age.Follow(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		list, err := o.list(ctx, options)
		note(ctx, err)
		return list, err
	}, func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		watch, err := o.watch(ctx, options)
		if err == nil || options.SendInitialEvents == nil { // otherwise client-go lists next
			note(ctx, err)
		}
		return watch, err
	})
	return &cache.ListWatch{ListWithContextFunc: followed.List, WatchFuncWithContext: followed.Watch}
}
