package serve

import (
	"fmt"
	"time"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/server"
)

// validateFiles reports what is wrong with the files that a valid configuration names.
func validateFiles(a *command.App, path string, text []byte, config *v1alpha1.ServerConfiguration) {
	var problems v1alpha1.Problems
	warnings, wrong := 0, false
	for _, p := range server.CheckFiles(config, time.Now()) {
		switch {
		case p.Warning:
			warnings++
			p.Message = "warning: " + p.Message
		case p.Missing:
			wrong = true
			p.Message += "; where the server's files are not on this machine, use --without-files"
		default:
			wrong = true
		}
		problems = append(problems, p.Problem)
	}
	printProblems(a, command.ConfigProblems(path, v1alpha1.Locate(text, problems)))
	switch {
	case wrong:
		a.Status = command.StatusDenied
	case warnings > 0:
		printProblems(a, []string{fmt.Sprintf("%s: valid, with warnings: %d", path, warnings)})
	default:
		printProblems(a, []string{path + ": valid, and so are the files that it names"})
	}
}
