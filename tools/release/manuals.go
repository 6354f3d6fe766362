package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// manualFolder is the folder of manual pages in archives; the packages have its parts under /usr/share.
const manualFolder = "man/man1/"

// writeManuals lets the program write its manual pages. It runs the program for this machine, which it
// builds if the release has none.
func (r *release) writeManuals(ctx context.Context, dir string) error {
	here := platform{runtime.GOOS, runtime.GOARCH}
	program := binary{here, filepath.Join(dir, "host", here.program())}
	if i := slices.IndexFunc(r.binaries, func(b binary) bool { return b.platform == here }); i >= 0 {
		program = r.binaries[i]
	} else if err := r.buildProgram(ctx, program); err != nil {
		return err
	}
	folder := filepath.Join(dir, "man1")
	cmd := exec.CommandContext(ctx, program.path, "man", folder)
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix()))
	cmd.Stderr = r.log
	if err := cmd.Run(); err != nil {
		return err
	}
	files, err := os.ReadDir(folder) // sorted
	if err != nil {
		return err
	}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return err
		}
		r.manuals = append(r.manuals, entry{manualFolder + f.Name(), 0o644, content})
	}
	return r.compressManuals(filepath.Join(dir, "packaged"))
}

// compressManuals writes the pages as packages have them.
func (r *release) compressManuals(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, m := range r.manuals {
		var b bytes.Buffer
		compressed, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := compressed.Write(m.content); err != nil {
			return err
		}
		if err := compressed.Close(); err != nil {
			return err
		}
		path := filepath.Join(folder, strings.TrimPrefix(m.name, manualFolder)+".gz")
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			return err
		}
		r.packagedManuals = append(r.packagedManuals, path)
	}
	return nil
}
