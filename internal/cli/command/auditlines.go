package command

import "github.com/node-authorizer/node-authorizer/internal/audit/auditlog"

// WarnLines reports on stderr which lines were not read.
func (a *App) WarnLines(read auditlog.Summary) {
	for _, broken := range read.Broken {
		a.Failure("%v; the line is skipped", broken)
	}
	for _, unfinished := range read.Unfinished {
		a.Warn("%v; the file is being written, or was truncated, and this line is skipped", unfinished)
	}
}
