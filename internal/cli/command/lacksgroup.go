package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/doctor"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// WarningRows is the maximum number of warnings of one kind; results list everything.
const WarningRows = 10

// namedLacks is how many objects that files lack one line names.
const namedLacks = 10

// The cluster roles of deploy/reader, with the rights that commands need.
const (
	readerRole        = "node-authorizer:reader"
	secretsReaderRole = "node-authorizer:reader-secrets"
)

// The effects of missing state on the result of a command.
const (
	AnswerDepends   = "the answer depends on them"
	ListIncomplete  = "the list may be incomplete"
	MoreNodes       = "more nodes may be able to"
	MorePaths       = "there may be other paths"
	RequestsDepend  = "requests that depend on them are not decided"
	SnapshotDepends = "answers from the snapshot that depend on them will be unknown"
	ChecksNotMade   = "checks that depend on them are not made"
)

// WarnMissing warns about missing state, and says what its absence means for the result.
func (a *App) WarnMissing(all []Missing, effect string) {
	a.NoteNotRead(all)
	lines := groupMissing(all, effect)
	for _, line := range lines[:min(WarningRows, len(lines))] {
		a.Warn("%s", line)
	}
	if more := len(lines) - WarningRows; more > 0 {
		a.Warn("and %s more that the input lacks", render.Thousands(more))
	}
}

// MissingText writes what is missing below a result: one line for everything that the user may not
// read, and a limited number for what files lack. Wide has a line for each.
func MissingText(p *render.Page, all []Missing) {
	isRefused := func(m Missing) bool { return m.refusal != "" }
	withOwnLine := slices.DeleteFunc(slices.Clone(all), isRefused)
	var lines []string
	if len(all)-len(withOwnLine) > 1 && !p.Wide() {
		refused := slices.DeleteFunc(slices.Clone(all), func(m Missing) bool { return !isRefused(m) })
		lines = append(lines, refusedLine(refused, ""))
	} else {
		withOwnLine = all
	}
	for _, m := range withOwnLine {
		lines = append(lines, m.Line())
	}
	shown := lines
	if !p.Wide() {
		shown = lines[:min(WarningRows, len(lines))]
	}
	for _, line := range shown {
		p.Line("  %s", line)
	}
	if more := len(lines) - len(shown); more > 0 {
		p.Line("  … and %s more (-o json lists all)", render.Thousands(more))
	}
}

// groupMissing describes missing state with one line for everything that the user may not read,
// and one for everything that files lack, unless it is the only one of its group.
func groupMissing(all []Missing, effect string) []string {
	var refused, lacking []Missing
	var lines []string
	for _, m := range all {
		switch {
		case m.refusal != "":
			refused = append(refused, m)
		case m.Lacks != "" && m.get != "":
			lacking = append(lacking, m)
		default:
			lines = append(lines, m.String())
		}
	}
	for _, group := range []struct {
		all  []Missing
		line func([]Missing, string) string
	}{{refused, refusedLine}, {lacking, lackingLine}} {
		switch len(group.all) {
		case 0:
		case 1:
			lines = append(lines, group.all[0].String())
		default:
			lines = append(lines, group.line(group.all, effect))
		}
	}
	return lines
}

// refusedLine names what the user may not read, with the first refusal and the roles that allow it.
func refusedLine(all []Missing, effect string) string {
	names := resourceNames(all)
	roles := "the cluster role " + readerRole
	if slices.Contains(names, "secrets") {
		roles = "the cluster roles " + readerRole + " and " + secretsReaderRole
	}
	if effect != "" {
		effect += "; "
	}
	return fmt.Sprintf("could not read %s: %s; %sbind %s (deploy/reader) to the user",
		strings.Join(names, ", "), all[0].refusal, effect, roles)
}

// lackingLine names what files lack, and how to get it.
func lackingLine(all []Missing, effect string) string {
	var names, get []string
	for _, m := range all {
		names = append(names, m.Lacks)
		get = append(get, strings.Split(m.get, ",")...)
	}
	text := strings.Join(names[:min(namedLacks, len(names))], "; ")
	if more := len(names) - namedLacks; more > 0 {
		text += fmt.Sprintf(" and %s more (-o json lists all)", render.Thousands(more))
	}
	slices.Sort(get)
	return fmt.Sprintf("the input lacks %s; %s; add what kubectl get %s -A -o yaml prints with --from, or use a snapshot",
		text, effect, strings.Join(slices.Compact(get), ","))
}

// Unexamined converts what the doctor could not read.
func Unexamined(all []doctor.Missing) []Missing {
	found := make([]Missing, len(all))
	for i, m := range all {
		found[i] = Missing{Resource: m.Resource, Reason: strings.TrimSuffix(m.Reason+"; "+m.Remedy, "; "), refusal: m.Reason}
	}
	return found
}
