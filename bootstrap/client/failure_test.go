package client

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"testing"
)

// A container without the right user is a usual mistake: the image does not run as
// root, and units mount files of root.
func TestErrorsOfFilesNameTheUser(t *testing.T) {
	key := fmt.Errorf("reading the client certificate: %w", &fs.PathError{Op: "open", Path: "/config/tls-key.pem", Err: syscall.EACCES})
	want := "reading the client certificate: open /config/tls-key.pem: permission denied; this runs as user 65532: run it as a user who may, root for example (in a container with --user=0)"
	if got := ofUser(key, 65532); got.Error() != want || !errors.Is(got, fs.ErrPermission) {
		t.Errorf("error %v, want %s", got, want)
	}
	for _, err := range []error{
		nil,
		&fs.PathError{Op: "open", Path: "/config/ca.pem", Err: syscall.ENOENT},
		&Unreachable{Err: &net.OpError{Op: "dial", Err: syscall.EACCES}},
	} {
		if got := ofUser(err, 65532); !errors.Is(got, err) {
			t.Errorf("error %v, want %v", got, err)
		}
	}
}
