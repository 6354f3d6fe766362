package server

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// Server is one process of "node-authorizer server" with the files that it reads.
// Stop, Kill, Pause, Resume and, after the first start, Start act on the process.
type Server struct {
	*localplane.Program
	// Address is the host:port of the webhooks or of the bootstrap service.
	Address string
	// MetricsAddress is the host:port of the metrics.
	MetricsAddress string

	plane        *localplane.Plane
	name, dir    string
	certificates int
}

// Build builds node-authorizer of the repository in the folder root. Go caches the programs that it runs, and links each of
// those that it builds, which takes as long as many of these tests.
func Build(ctx context.Context, root, program string) error {
	command := exec.CommandContext(ctx, "go", "run", "-exec", "cp", "./cmd/node-authorizer", program)
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build node-authorizer: %w:\n%s", err, output)
	}
	return nil
}

// New makes a server that is not started: a folder, two ports, and in the folder a
// serving certificate tls.crt with its key tls.key, and the plane's authority ca.crt. The
// name must be unique in the plane. New can be called while the plane is prepared.
func New(p *localplane.Plane, name, dir string) (*Server, error) {
	s := &Server{plane: p, name: name, dir: dir}
	if err := s.prepare(); err != nil {
		return nil, fmt.Errorf("prepare the server %s: %w", name, err)
	}
	return s, nil
}

func (s *Server) prepare() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	for _, address := range []*string{&s.Address, &s.MetricsAddress} {
		port, err := s.plane.TakePort()
		if err != nil {
			return err
		}
		*address = fmt.Sprintf("127.0.0.1:%d", port)
	}
	if err := CopyFiles(s.dir, map[string]string{"ca.crt": s.plane.CAFile()}); err != nil {
		return err
	}
	return s.RotateCertificate()
}

// RotateCertificate replaces the serving certificate and its key. A running server
// reloads them.
func (s *Server) RotateCertificate() error {
	s.certificates++
	certificate, key, err := s.plane.ServingCertificate(fmt.Sprintf("%s-%d", s.name, s.certificates))
	if err != nil {
		return err
	}
	return CopyFiles(s.dir, map[string]string{"tls.crt": certificate, "tls.key": key})
}

// Command is the command line of a server.
type Command struct {
	// Program is the path of node-authorizer.
	Program string
	// Args are its arguments. The default is "server" with the config file.
	Args []string
	// Env is its environment, "NAME=VALUE" each. The default is the environment of this process.
	Env []string
	// Ready returns nil when the server is ready. The default is Server.Ready.
	Ready func(context.Context) error
}

// Run starts the server for the first time, and waits until it is ready.
func (s *Server) Run(ctx context.Context, c Command) error {
	options := localplane.ProgramOptions{Path: c.Program, Args: c.Args, Env: c.Env, Ready: c.Ready}
	if options.Args == nil {
		options.Args = []string{"server", s.ConfigArgument()}
	}
	if options.Ready == nil {
		options.Ready = s.Ready
	}
	var err error
	s.Program, err = s.plane.AddProgram(ctx, s.name, options)
	return err
}

// Environment returns the variables that every program needs. Other variables of this
// process might configure node-authorizer or the AWS SDK.
func Environment(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, more...)
}

// Log returns the log of the server.
func (s *Server) Log() (string, error) {
	text, err := os.ReadFile(s.LogFile())
	return string(text), err
}

// Roots returns the certificates of a PEM file.
func Roots(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", filepath.Base(file))
	}
	return roots, nil
}
