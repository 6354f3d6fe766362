package command

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// Open opens a file, or - for stdin, and returns its name for errors.
func (s Streams) Open(path string) (io.ReadCloser, string, error) {
	if path == StdinName {
		return io.NopCloser(s.In), "stdin", nil
	}
	file, err := os.Open(path)
	return file, path, err
}

// WriteFile writes a whole file or nothing, where that is possible.
func WriteFile(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return saveInto(path, write)
	}
	return replaceFile(path, write)
}

// saveInto writes to a file that cannot be replaced, such as a pipe or a terminal.
func saveInto(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	return f.Close()
}

// replaceFile replaces a file atomically, so that readers never see a partial file.
func replaceFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// ConfigProblems formats the errors so that editors find their position:
// "server.yaml:3: webhook.keyFile: …".
func ConfigProblems(path string, problems v1alpha1.Problems) []string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		place := path
		if p.Line > 0 {
			place = fmt.Sprintf("%s:%d", path, p.Line)
		}
		p.Line = 0
		lines[i] = place + ": " + p.String()
	}
	return lines
}
