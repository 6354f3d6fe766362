package client

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"testing"
)

// It is a common mistake to run a container as the wrong user: the image does not run as
// root, and units mount files that root owns.
func TestErrorsOfFilesNameTheUser(t *testing.T) {
	denied := &fs.PathError{Op: "open", Path: "/config/tls-key.pem", Err: syscall.EACCES}
	key := fmt.Errorf("reading the client certificate: %w", denied)
	want := "reading the client certificate: open /config/tls-key.pem: permission denied; " +
		"this runs as user 65532: run it as a user with access, for example root (in a container with --user=0)"
	if got := withUser(key, 65532); got.Error() != want || !errors.Is(got, fs.ErrPermission) {
		t.Errorf("error %v, want %s", got, want)
	}
	for _, err := range []error{
		nil,
		&fs.PathError{Op: "open", Path: "/config/ca.pem", Err: syscall.ENOENT},
		&GaveUp{Err: &net.OpError{Op: "dial", Err: syscall.EACCES}},
	} {
		if got := withUser(err, 65532); !errors.Is(got, err) {
			t.Errorf("error %v, want %v", got, err)
		}
	}
}
