package doctor

import (
	"context"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/doctor"
	"github.com/node-authorizer/node-authorizer/internal/doctor/probe"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// checkProbe validates --probe beside the other flags.
func (e *examining) checkProbe() error {
	answered := []string{string(doctor.CheckAuthorization), string(doctor.CheckAdmission)}
	switch {
	case !e.probe:
		return nil
	case len(e.state.From) > 0:
		return command.Usagef("--probe asks an API server, and --from examines files: remove one of them")
	case len(e.checks) > 0 && !slices.ContainsFunc(e.checks, func(name string) bool { return slices.Contains(answered, name) }):
		return command.Usagef("--probe answers the checks %s and %s, and --checks has neither: add one of them, or remove --probe",
			answered[0], answered[1])
	}
	return nil
}

// ask makes the probes of a live cluster, if they are wanted.
func (e *examining) ask(ctx context.Context, config *rest.Config, cluster *doctor.Cluster, bar *command.Progress) error {
	if !e.probe {
		return nil
	}
	var err error
	e.options.Probes, err = probe.Run(ctx, config, probe.Options{Minor: cluster.Version, Progress: probes(bar)})
	return err
}

// probes returns nil if no bar is drawn.
func probes(p *command.Progress) func(done, total int) {
	if p == nil {
		return nil
	}
	return func(done, total int) {
		p.Draw("answers", int64(done), int64(total), func() string { return render.Count(done, "probe") })
	}
}
