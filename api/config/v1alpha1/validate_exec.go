package v1alpha1

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Exec is the program that checks the evidence, for the attestor exec.
type Exec struct {
	// Provider is the name of the program's provider, a DNS label: the names of its ledger entries
	// begin with it.
	Provider string `json:"provider"`
	// Command is the absolute path of the program, and its arguments. No shell is involved.
	Command []string `json:"command"`
	// Environment has NAME=VALUE, or NAME for a variable of the server. The program has PATH and
	// these variables only.
	Environment []string `json:"environment"`
	// Timeout is how long the program may run, and MaxConcurrent how many run at the same time.
	Timeout       metav1.Duration `json:"timeout"`
	MaxConcurrent int32           `json:"maxConcurrent"`
}

// Limits of reasonable values for programs.
const (
	maxProgramTime = time.Minute
	maxPrograms    = 256
)

var (
	isProviderName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`).MatchString
	isVariable     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(=|$)`).MatchString
)

// otherProviders are the names of providers that are not programs.
func otherProviders() []string { return []string{"aws", "oidc", "alwaysallow", "key", "tpm"} }

// execValues checks each value alone.
func (v *validation) execValues(e *Exec) {
	v.list("bootstrap.exec.environment", e.Environment, isVariable, "NAME=VALUE, or the NAME of a variable of the server")
	v.duration("bootstrap.exec.timeout", e.Timeout, time.Second, maxProgramTime)
	v.number("bootstrap.exec.maxConcurrent", int64(e.MaxConcurrent), 1, maxPrograms)
}

func (v *validation) exec(b *Bootstrap) {
	e := &b.Exec
	switch {
	case !isProviderName(e.Provider):
		v.wrong("bootstrap.exec.provider", "want a name for the provider, up to 32 lower case letters, digits and dashes%s",
			given(e.Provider))
	case slices.Contains(otherProviders(), e.Provider):
		v.wrong("bootstrap.exec.provider", "%s is the name of another provider: choose your own", quoted(e.Provider))
	}
	if len(e.Command) == 0 || !path.IsAbs(e.Command[0]) {
		v.wrong("bootstrap.exec.command", "want the absolute path of the program, and its arguments%s", given(strings.Join(e.Command, " ")))
	}
	if e.Timeout.Duration > b.RequestTimeout.Duration {
		v.wrong("bootstrap.exec.timeout", "want up to bootstrap.requestTimeout, %v, got %v", b.RequestTimeout.Duration, e.Timeout.Duration)
	}
}
