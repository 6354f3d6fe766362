package cli

import "github.com/node-authorizer/node-authorizer/internal/audit/auditlog"

// warnLines reports on stderr which lines were not read.
func (a *app) warnLines(read auditlog.Summary) {
	for _, broken := range read.Broken {
		a.failure("%v; the line is skipped", broken)
	}
	for _, unfinished := range read.Unfinished {
		a.warn("%v; the file is being written, or was truncated, and this line is skipped", unfinished)
	}
}
