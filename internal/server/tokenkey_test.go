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

// A server that cannot read the key of tokens is not ready, however well the rest is,
// and is ready again when it can.
func TestWithoutTheKeyOfTokensAServerIsNotReady(t *testing.T) {
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
		for _, lacking := range []bool{false, true, false} {
			forbidden.Store(lacking)
			time.Sleep(2 * keyInterval)
			synctest.Wait()
			if _, err := k.state(); (err != nil) != lacking {
				t.Errorf("the key may be read: %v, and the state is %v", !lacking, err)
			}
		}
		cancel()
	})
}
