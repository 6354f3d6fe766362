package manifest

import (
	"errors"
	"testing"
)

func TestErrorUnwraps(t *testing.T) {
	inner := errors.New("inner")
	if err := error(&Error{File: "a", Err: inner}); !errors.Is(err, inner) {
		t.Error("the cause is lost")
	}
}
