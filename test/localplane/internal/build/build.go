package build

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Binaries is a folder with the programs.
type Binaries struct {
	Dir string
}

// Path returns the path of a program.
func (b Binaries) Path(program string) string {
	return filepath.Join(b.Dir, program)
}

// Ensure returns the programs with the names, or all if there are no names. It builds
// those that are not cached, which takes some minutes and reports progress. Several
// processes may call it at the same time: one builds, the others wait.
func Ensure(ctx context.Context, progress io.Writer, names ...string) (Binaries, error) {
	dir, err := pinsDir(ctx)
	if err != nil {
		return Binaries{}, err
	}
	p, err := readPins(ctx, dir)
	if err != nil {
		return Binaries{}, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Binaries{}, fmt.Errorf("find the cache for the programs of the control plane: %w", err)
	}
	b := Binaries{Dir: filepath.Join(cache, "node-authorizer", "bin", p.key())}
	if len(b.missing(names)) == 0 {
		return b, nil
	}
	if err := os.MkdirAll(b.Dir, 0o755); err != nil {
		return Binaries{}, fmt.Errorf("make the cache for the programs of the control plane: %w", err)
	}
	unlock, err := lock(ctx, b.Dir+".lock", progress)
	if err != nil {
		return Binaries{}, err
	}
	defer unlock()
	return b, p.buildAll(ctx, b, progress, names)
}

// missing returns the programs with the names, or of all if there are no names, that are
// not cached.
func (b Binaries) missing(names []string) []Program {
	var missing []Program
	for _, program := range Programs() {
		if len(names) > 0 && !slices.Contains(names, program.Name) {
			continue
		}
		if _, err := os.Stat(b.Path(program.Name)); err != nil {
			missing = append(missing, program)
		}
	}
	return missing
}

func (p *pins) buildAll(ctx context.Context, b Binaries, progress io.Writer, names []string) error {
	missing := b.missing(names)
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintf(progress, "building the control plane from Go modules into %s; this is done once and takes some minutes\n", b.Dir)
	start := time.Now()
	for i, program := range missing {
		fmt.Fprintf(progress, "[%d/%d] %s %s ...\n", i+1, len(missing), program.Name, p.versions[program.Module])
		began := time.Now()
		if err := p.build(ctx, b, program); err != nil {
			return err
		}
		fmt.Fprintf(progress, "[%d/%d] %s built in %s (%s in all)\n", i+1, len(missing), program.Name,
			time.Since(began).Round(time.Second), time.Since(start).Round(time.Second))
	}
	return nil
}

// build writes a temporary file and renames it, so that an interrupted build leaves no
// incomplete program.
func (p *pins) build(ctx context.Context, b Binaries, program Program) error {
	partial := b.Path("." + program.Name + ".partial")
	defer os.Remove(partial)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", p.linkerFlags, "-o", partial,
		program.Package)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("build %s: %w", program.Name, context.Cause(ctx))
		}
		return fmt.Errorf("build %s in %s: %w\n%s", program.Name, p.dir, err, bytes.TrimSpace(output.Bytes()))
	}
	if err := os.Rename(partial, b.Path(program.Name)); err != nil {
		return fmt.Errorf("build %s: %w", program.Name, err)
	}
	return nil
}

// lock waits until no other process builds. The kernel releases the lock when its holder
// exits.
func lock(ctx context.Context, path string, progress io.Writer) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the build of the control plane: %w", err)
	}
	said := false
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			file.Close()
			return nil, fmt.Errorf("lock the build of the control plane: %s: %w", path, err)
		}
		if !said {
			fmt.Fprintln(progress, "another process builds the control plane; waiting for it")
			said = true
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("wait for another process that builds the control plane: %w", context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}
