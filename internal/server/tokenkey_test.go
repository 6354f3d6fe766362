package server

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
)

// A server that cannot read the token key is not ready until it can.
func TestWithoutTheTokenKeyAServerIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var forbidden atomic.Bool
		k := newTokenKey(func(context.Context) error {
			if forbidden.Load() {
				return errors.New("forbidden")
			}
			return nil
		})
		if _, err := k.state(); err == nil {
			t.Error("ready before the key was read")
		}
		ctx, cancel := context.WithCancel(t.Context())
		go k.follow(ctx, logr.Discard())
		for _, unreadable := range []bool{false, true, false} {
			forbidden.Store(unreadable)
			time.Sleep(2 * keyInterval)
			synctest.Wait()
			if _, err := k.state(); (err != nil) != unreadable {
				t.Errorf("the key may be read: %v, and the state is %v", !unreadable, err)
			}
		}
		cancel()
	})
}
