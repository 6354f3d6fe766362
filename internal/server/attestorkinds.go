package server

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/machines"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/exec"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/key"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/tpm"
)

// newRegistry returns the registered machines; nil if nothing asks for them.
func newRegistry(j *join, cluster *rest.Config) (*machines.Registry, error) {
	b := &j.config.Bootstrap
	if (b.Address == "" || !b.UsesMachines()) && !j.config.Approver.UsesMachines() {
		return nil, nil
	}
	client, err := machines.NewClient(cluster)
	if err != nil {
		return nil, err
	}
	return machines.New(machines.Options{
		Client: client, Manual: b.Approval == v1alpha1.ManualApproval, MaxAge: j.config.Cluster.MaxStaleness.Duration,
		Unreadable: func(machine string, err error) {
			j.logger.Error(err, "a registered machine cannot be used", "machine", machine)
		},
	}), nil
}

func (p *preparation) tpm() error {
	options, err := tpmOptions(&p.config.TPM)
	if err != nil {
		return err
	}
	options.Machines, options.Sealer = p.registry, p.challenge()
	attestor, err := tpm.New(options)
	if err != nil {
		return fmt.Errorf("bootstrap.tpm.nodeName: %w", err)
	}
	p.make(func(context.Context) (attest.Attestor, error) { return attestor, nil })
	return nil
}

func tpmOptions(t *v1alpha1.TPM) (tpm.Options, error) {
	options := tpm.Options{TPM: *t}
	if t.CertificateAuthorities == "" {
		return options, nil
	}
	files, err := authorityFiles(t.CertificateAuthorities)
	if err != nil {
		return options, err
	}
	options.Authorities = x509.NewCertPool()
	for _, file := range files {
		certificates, err := readAuthorities(tpmAuthorities, file)
		if err != nil {
			return options, err
		}
		for _, c := range certificates {
			options.Authorities.AddCert(c)
		}
	}
	return options, nil
}

const tpmAuthorities = "bootstrap.tpm.certificateAuthorities"

// authorityFiles returns the files in a folder, or the path itself.
func authorityFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", tpmAuthorities, err)
	case !info.IsDir():
		return []string{path}, nil
	}
	var files []string
	for _, pattern := range []string{"*.pem", "*.crt"} {
		found, err := filepath.Glob(filepath.Join(path, pattern))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", tpmAuthorities, err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("read %s: %s has no file that ends with .pem or .crt", tpmAuthorities, path)
	}
	slices.Sort(files)
	return files, nil
}

func (p *preparation) key() error {
	options := key.Options{ClusterID: p.config.Key.ClusterID, Registry: p.registry, Challenger: p.challenge()}
	var err error
	if options.Authorities, err = readPool("bootstrap.key.certificateAuthorityFile", p.config.Key.CertificateAuthorityFile); err != nil {
		return err
	}
	p.make(func(context.Context) (attest.Attestor, error) { return key.New(options), nil })
	return nil
}

// exec prepares the attestor that runs a program. Its ledger entries have the name of the program's provider.
func (p *preparation) exec() {
	e := &p.config.Exec
	options := exec.Options{Provider: e.Provider, Challenger: p.challenge(), Program: program(e)}
	p.pending.kind = e.Provider
	p.make(func(context.Context) (attest.Attestor, error) { return exec.New(options), nil })
}

func program(e *v1alpha1.Exec) exec.Program {
	return exec.Program{
		Command: e.Command, Environment: exec.Environ(e.Environment, os.LookupEnv),
		Timeout: e.Timeout.Duration, MaxConcurrent: int(e.MaxConcurrent),
	}
}

// program checks that the program of the attestor exec can be run, and be replaced by nobody else. It does not run it.
func (c *fileCheck) program(e *v1alpha1.Exec) {
	const field = "bootstrap.exec.command"
	for _, variable := range e.Environment {
		if len(exec.Environ([]string{variable}, os.LookupEnv)) == 0 {
			c.warn("bootstrap.exec.environment", "%s is not set here: the program runs without it", variable)
		}
	}
	info, err := os.Stat(e.Command[0])
	switch {
	case err != nil:
		c.unusable(field, err)
	case runtime.GOOS == "windows":
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		c.wrong(field, "%s is not a program: it has the mode %s", e.Command[0], info.Mode())
	case info.Mode().Perm()&0o002 != 0:
		c.wrong(field, "every user of the host can replace %s, and with it decide who joins: take the permission away with chmod o-w",
			e.Command[0])
	}
}
