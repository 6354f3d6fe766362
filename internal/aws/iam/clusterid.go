package iam

import (
	"errors"
	"fmt"
	"strings"
)

// MaxClusterID is the maximum length of a cluster id in characters.
const MaxClusterID = 1024

// CheckClusterID returns an error if a cluster id is invalid. The id is the value of a
// signed header. The signature normalizes spaces, so the id must be printable ASCII
// without leading, trailing or consecutive spaces.
func CheckClusterID(id string) error {
	odd := strings.IndexFunc(id, func(r rune) bool { return r < ' ' || r > '~' }) >= 0
	switch {
	case id == "":
		return errors.New("the cluster id is empty")
	case len(id) > MaxClusterID:
		return fmt.Errorf("the cluster id has %d characters: want up to %d", len(id), MaxClusterID)
	case odd, strings.TrimSpace(id) != id, strings.Contains(id, "  "):
		return fmt.Errorf("the cluster id %q is invalid: want printable ASCII without leading, trailing or consecutive spaces", id)
	}
	return nil
}
