package server

import (
	"context"
	"os"
	"runtime"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/exec"
)

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
