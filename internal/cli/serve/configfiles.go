package serve

import (
	"fmt"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/server"
)

// printFound prints what is wrong with a configuration whose fields are valid, and sets the exit status; valid if nothing is.
func printFound(a *command.App, path string, text []byte, found []server.FileProblem, valid string) {
	var problems v1alpha1.Problems
	warnings, wrong := 0, false
	for _, p := range found {
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
		printProblems(a, []string{path + ": " + valid})
	}
}
