package iam

import (
	"errors"
	"fmt"
	"strings"
)

// MaxClusterID is how many characters the id of a cluster can have.
const MaxClusterID = 1024

// CheckClusterID returns an error if no server can have an id of a cluster: it is the
// value of a header that the signature of a request leaves as it is, printable ASCII
// with no spaces at its ends, and not two in a row.
func CheckClusterID(id string) error {
	odd := strings.IndexFunc(id, func(r rune) bool { return r < ' ' || r > '~' }) >= 0
	switch {
	case id == "":
		return errors.New("the cluster id is empty")
	case len(id) > MaxClusterID:
		return fmt.Errorf("the cluster id has %d characters: want up to %d", len(id), MaxClusterID)
	case odd, strings.TrimSpace(id) != id, strings.Contains(id, "  "):
		return fmt.Errorf("the cluster id %q cannot be signed for: want printable ASCII, with no spaces at its ends, and not two in a row", id)
	}
	return nil
}
