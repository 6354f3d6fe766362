package serve

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/join/client"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/exec"
)

// exec returns the collector that runs a program. The words of --collector-command are its path and its arguments: no
// shell reads them, and none of them can contain a space.
func (j *joining) exec(context.Context) (attest.Collector, error) {
	words := strings.Fields(j.collectorCommand)
	if len(words) == 0 || !filepath.IsAbs(words[0]) {
		return nil, command.Usagef("--authorizer=exec needs --collector-command with the absolute path of a program, and its arguments")
	}
	return exec.NewCollector(exec.Program{Command: words, Timeout: client.LastTry, MaxConcurrent: 1}), nil
}
