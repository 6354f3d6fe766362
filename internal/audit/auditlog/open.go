package auditlog

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/node-authorizer/node-authorizer/internal/filetext"
)

// open opens a file. It detects compression by the content, not by the name.
func (f File) open(stdin io.Reader) (*filetext.Text, error) {
	var file io.ReadCloser
	switch {
	case f.Path == Stdin && stdin == nil:
		return nil, errors.New("read the audit log: there is no standard input")
	case f.Path == Stdin:
		file = io.NopCloser(stdin)
	default:
		var err error
		if file, err = os.Open(f.Path); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
	}
	text, err := filetext.New(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return text, nil
}
