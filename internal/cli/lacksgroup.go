package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/doctor"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// warningRows is the maximum number of warnings of one kind; results list everything.
const warningRows = 10

// namedLacks is how many objects that files lack one line names.
const namedLacks = 10

// The cluster roles of deploy/reader, with the rights that commands need.
const (
	readerRole        = "node-authorizer:reader"
	secretsReaderRole = "node-authorizer:reader-secrets"
)

// The effects of missing state on the result of a command.
const (
	answerDepends   = "the answer depends on them"
	listIncomplete  = "the list may be incomplete"
	moreNodes       = "more nodes may be able to"
	morePaths       = "there may be other paths"
	requestsDepend  = "requests that depend on them are not decided"
	snapshotDepends = "answers from the snapshot that depend on them will be unknown"
	checksNotMade   = "checks that depend on them are not made"
)

// warnMissing warns about missing state, and says what its absence means for the result.
func (a *app) warnMissing(all []missing, effect string) {
	lines := groupMissing(all, effect, missing.String)
	for _, line := range lines[:min(warningRows, len(lines))] {
		a.warn("%s", line)
	}
	if more := len(lines) - warningRows; more > 0 {
		a.warn("and %s more that the input lacks", render.Thousands(more))
	}
}

// missingText writes what is missing below a result: one line for everything that the user may not
// read, and a limited number for what files lack. Wide has a line for each.
func missingText(p *render.Page, all []missing) {
	isRefused := func(m missing) bool { return m.refusal != "" }
	withOwnLine := slices.DeleteFunc(slices.Clone(all), isRefused)
	var lines []string
	if len(all)-len(withOwnLine) > 1 && !p.Wide() {
		refused := slices.DeleteFunc(slices.Clone(all), func(m missing) bool { return !isRefused(m) })
		lines = append(lines, refusedLine(refused, ""))
	} else {
		withOwnLine = all
	}
	for _, m := range withOwnLine {
		lines = append(lines, m.line())
	}
	shown := lines
	if !p.Wide() {
		shown = lines[:min(warningRows, len(lines))]
	}
	for _, line := range shown {
		p.Line("  %s", line)
	}
	if more := len(lines) - len(shown); more > 0 {
		p.Line("  … and %s more (-o json lists all)", render.Thousands(more))
	}
}

// groupMissing describes missing state with one line for everything that the user may not read,
// and one for everything that files lack. What is the only one of its group has the given form.
func groupMissing(all []missing, effect string, alone func(missing) string) []string {
	var refused, lacking []missing
	var lines []string
	for _, m := range all {
		switch {
		case m.refusal != "":
			refused = append(refused, m)
		case m.Lacks != "" && m.get != "":
			lacking = append(lacking, m)
		default:
			lines = append(lines, alone(m))
		}
	}
	if effect != "" {
		effect += "; "
	}
	for _, group := range []struct {
		all  []missing
		line func([]missing, string) string
	}{{refused, refusedLine}, {lacking, lackingLine}} {
		switch len(group.all) {
		case 0:
		case 1:
			lines = append(lines, alone(group.all[0]))
		default:
			lines = append(lines, group.line(group.all, effect))
		}
	}
	return lines
}

// refusedLine names what the user may not read, with the first refusal and the roles that allow it.
func refusedLine(all []missing, effect string) string {
	names := resourceNames(all)
	roles := "the cluster role " + readerRole
	if slices.Contains(names, "secrets") {
		roles = "the cluster roles " + readerRole + " and " + secretsReaderRole
	}
	return fmt.Sprintf("could not read %s: %s; %sbind %s (deploy/reader) to the user",
		strings.Join(names, ", "), all[0].refusal, effect, roles)
}

// lackingLine names what files lack, and how to get it.
func lackingLine(all []missing, effect string) string {
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
	return fmt.Sprintf("the input lacks %s; %sadd what kubectl get %s -A -o yaml prints with --from, or use a snapshot",
		text, effect, strings.Join(slices.Compact(get), ","))
}

// unexamined converts what the doctor could not read.
func unexamined(all []doctor.Missing) []missing {
	found := make([]missing, len(all))
	for i, m := range all {
		found[i] = missing{Resource: m.Resource, Reason: strings.TrimSuffix(m.Reason+"; "+m.Remedy, "; "), refusal: m.Reason}
	}
	return found
}
