package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/doctor"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/output/report"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Codes of questions that could not be decided.
const (
	CodeEvaluationFailed verdict.Code = "EvaluationFailed"
	codeRBACNotLoaded    verdict.Code = "RBACNotLoaded"
	CodeInputIncomplete  verdict.Code = "InputIncomplete"
)

// Missing is a resource that could not be read, or an object of it that files lack.
type Missing struct {
	// Resource is a name as in kubectl: persistentvolumes, leases.coordination.k8s.io.
	Resource string `json:"resource"`
	// Lacks names the object that the files do not hold: "persistent volume pv-1 of …"; empty for a
	// resource that could not be read.
	Lacks string `json:"lacks,omitempty"`
	// Reason is the reason in one line, with what to do about it.
	Reason string `json:"reason"`

	// refusal is the API server's, for what the user may not read.
	refusal string
	// get is the resource to get with kubectl and to add to the files: "pods".
	get string
}

func (m Missing) String() string { return m.Resource + ": " + m.Reason }

// Line returns the line below an answer.
func (m Missing) Line() string {
	if m.Lacks != "" {
		return m.Reason
	}
	return "could not read " + m.String()
}

// Unreadable converts unread resources for the output.
func Unreadable(all []source.Missing) []Missing {
	found := make([]Missing, len(all))
	for i, m := range all {
		found[i] = NewMissing(m)
	}
	return found
}

// NewMissing converts a resource that could not be read for the output.
func NewMissing(m source.Missing) Missing {
	return Missing{Resource: m.Resource.String(), Reason: m.Reason, refusal: m.Refusal()}
}

// AsMissing converts what the files do not hold for the output.
func (s *Session) AsMissing(all []evaluate.Lack) []Missing {
	found := make([]Missing, len(all))
	for i, l := range all {
		found[i] = Missing{Resource: l.Resource.String(), Lacks: l.String()}
		if l.RolesAndBindings {
			found[i].Reason = "there are no roles and bindings in " + s.State.Origin + ": add what kubectl get " +
				"clusterroles,clusterrolebindings,roles,rolebindings -A -o yaml prints with --from, or use a snapshot"
			continue
		}
		found[i].get = l.Resource.String()
		found[i].Reason = fmt.Sprintf(
			"the input lacks %s: add what kubectl get %s -A -o yaml prints with --from, or use a snapshot", l, l.Resource,
		)
	}
	return found
}

// UnreadNames returns the names of the resources that could not be read.
func UnreadNames(all []Missing) []string {
	return resourceNames(slices.DeleteFunc(slices.Clone(all), func(m Missing) bool { return m.Lacks != "" }))
}

// LackReason returns the reason of a question that is undecided because files lack objects.
func (s *Session) LackReason(all []evaluate.Lack, who Identity) verdict.Reason {
	if len(all) == 1 && all[0].RolesAndBindings {
		return s.RBACNeeded(who)
	}
	return verdict.Reason{
		Code:    CodeInputIncomplete,
		Message: (&evaluate.LackError{Lacks: all}).Error(),
		Hint:    "add it with --from, or use a snapshot of the cluster, which has every object that matters",
	}
}

// leftOut describes which kinds of objects in the files were not used. Secrets, config maps
// and resource claims are not used because pods refer to them by name.
func leftOut(state *source.State) string {
	known := []string{"Secret", "ConfigMap", "ResourceClaim.resource.k8s.io"}
	kinds := state.Skipped()
	maps.DeleteFunc(kinds, func(kind string, _ int) bool { return slices.Contains(known, kind) })
	text := unused(state.Origin, kinds, "they do not say what is on a node")
	makers := []string{
		"Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps", "DaemonSet.apps", "Job.batch", "CronJob.batch", "ReplicationController",
	}
	makesPods := slices.ContainsFunc(makers, func(kind string) bool { return kinds[kind] > 0 })
	if makesPods {
		text += "; what counts are pods with spec.nodeName, which their controllers and the scheduler make"
	}
	if makesPods && state.Counts()["Pod"] == 0 {
		text += ": add what kubectl get pods -A -o yaml prints"
	}
	return text
}

// unused says which objects have no effect, and why; empty if there are none.
func unused(origin string, kinds map[string]int, why string) string {
	if len(kinds) == 0 {
		return ""
	}
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, fmt.Sprintf("%s (%s)", kind, render.Thousands(kinds[kind])))
	}
	const most = 12
	return fmt.Sprintf("these objects in %s are not used, because %s: %s", origin, why, render.Names(all, most))
}

func resourceNames(all []Missing) []string {
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = m.Resource
	}
	return names
}

// RBACNeeded is the reason of an answer that roles and bindings decide, which the state does not have.
func (s *Session) RBACNeeded(who Identity) verdict.Reason {
	why := "RBAC decides about " + who.Kind()
	switch {
	case s.Configured != "":
		why = s.Configured + " asks RBAC"
	case who.IsNode:
		why = "RBAC could allow what the Node authorizer does not"
	}
	return verdict.Reason{
		Code:    codeRBACNotLoaded,
		Message: fmt.Sprintf("%s, and there are no roles and bindings in %s", why, s.State.Origin),
		Hint:    "add the roles and bindings with --from, or ask the cluster",
	}
}

// ForPage converts it for a page.
func (m Missing) ForPage() report.Missing {
	if m.Lacks != "" {
		return report.Missing{Reason: m.Reason}
	}
	return report.Missing{Resource: m.Resource, Reason: m.Reason}
}

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

// WarnLines reports on stderr which lines were not read.
func (a *App) WarnLines(read auditlog.Summary) {
	for _, broken := range read.Broken {
		a.Failure("%v; the line is skipped", broken)
	}
	for _, unfinished := range read.Unfinished {
		a.Warn("%v; the file is being written, or was truncated, and this line is skipped", unfinished)
	}
}
