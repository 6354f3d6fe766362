package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The flags of `make build`, which a test compares.
const (
	buildTags   = "grpcnotrace"
	linkerFlags = "-s -w"
	// linkedTo is the package with the variables that the linker sets.
	linkedTo = "github.com/node-authorizer/node-authorizer/internal/cli/command"
)

var allPlatforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

func parsePlatform(text string) (platform, error) {
	if !slices.Contains(allPlatforms, text) {
		return platform{}, fmt.Errorf("-platforms: unknown platform %q: want some of %s", text, strings.Join(allPlatforms, ", "))
	}
	system, arch, _ := strings.Cut(text, "/")
	return platform{system, arch}, nil
}

// program is the name of the program in an archive.
func (p platform) program() string {
	if p.os == "windows" {
		return programName + ".exe"
	}
	return programName
}

// binary is the program for one platform.
type binary struct {
	platform
	path string
}

func (r *release) buildPrograms(ctx context.Context, dir string) error {
	for _, p := range r.platforms {
		b := binary{p, filepath.Join(dir, p.os+"-"+p.arch, p.program())}
		if err := r.buildProgram(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		r.binaries = append(r.binaries, b)
	}
	return nil
}

// buildProgram builds without cgo and without paths of this machine. The version is linked and not
// taken from git, so that a build from an archive of the source gives the same bytes.
func (r *release) buildProgram(ctx context.Context, b binary) error {
	variables := fmt.Sprintf("-X %[1]s.linkedVersion=%[2]s -X %[1]s.linkedRevision=%[3]s", linkedTo, r.version, r.revision)
	cmd := exec.CommandContext(
		ctx, "go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-tags", buildTags,
		"-ldflags", linkerFlags+" "+variables, "-o", b.path, "./cmd/"+programName,
	)
	cmd.Dir = r.source
	// Variables that would change the result are reset.
	cmd.Env = append(os.Environ(), "GOOS="+b.os, "GOARCH="+b.arch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off",
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off")
	cmd.Stderr = r.log
	return cmd.Run()
}
