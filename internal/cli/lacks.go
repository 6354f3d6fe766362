package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/render"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// missing is a resource that could not be read, or something of it that files lack.
type missing struct {
	Resource string `json:"resource"`
	// Lacks is what files do not hold: "persistent volume pv-1 of …"; empty
	// for a resource that could not be read.
	Lacks string `json:"lacks,omitempty"`
	// Reason is one line, with what to do about it.
	Reason string `json:"reason"`
}

func (m missing) String() string { return m.Resource + ": " + m.Reason }

// line says it below an answer.
func (m missing) line() string {
	if m.Lacks != "" {
		return m.Reason
	}
	return "could not read " + m.String()
}

// unreadable is what could not be read, for people.
func unreadable(all []source.Missing) []missing {
	found := make([]missing, len(all))
	for i, m := range all {
		found[i] = missing{Resource: m.Resource.String(), Reason: m.Reason}
	}
	return found
}

// lacking is what files do not hold, for people.
func (s *session) lacking(all []evaluate.Lack) []missing {
	found := make([]missing, len(all))
	for i, l := range all {
		found[i] = missing{
			Resource: l.Resource.String(), Lacks: l.String(),
			Reason: fmt.Sprintf("the input lacks %s: add what kubectl get %s -A -o yaml prints with --from, or use a snapshot", l, l.Resource),
		}
		if l.RolesAndBindings {
			found[i].Reason = fmt.Sprintf("%s has no roles and bindings: add what kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o yaml prints with --from, or use a snapshot", s.State.Origin)
		}
	}
	return found
}

// unreadNames names the resources that could not be read, among what is missing.
func unreadNames(all []missing) []string {
	return resourceNames(slices.DeleteFunc(slices.Clone(all), func(m missing) bool { return m.Lacks != "" }))
}

// lackReason says that a question could not be decided because of what files lack.
func (s *session) lackReason(all []evaluate.Lack, who identity) verdict.Reason {
	if len(all) == 1 && all[0].RolesAndBindings {
		return s.rbacNeeded(who)
	}
	return verdict.Reason{
		Code:    codeInputIncomplete,
		Message: (&evaluate.LackError{Lacks: all}).Error(),
		Hint:    "add it with --from, or use a snapshot of the cluster, which has all that matters",
	}
}

// warningRows is how much of what is missing stderr gets; results have all.
const warningRows = 10

// warnMissing says on stderr what an answer lacks.
func (a *app) warnMissing(all []missing) {
	for _, m := range all[:min(warningRows, len(all))] {
		a.warn("%s", m)
	}
	if more := len(all) - warningRows; more > 0 {
		a.warn("and %s more that the input lacks", render.Thousands(more))
	}
}

// leftOut says which kinds of objects in the files were not used. Secrets, config
// maps and resource claims are known by the names that pods have for them.
func leftOut(state *source.State) string {
	known := []string{"Secret", "ConfigMap", "ResourceClaim.resource.k8s.io"}
	skipped := state.Skipped()
	var kinds []string
	makesPods := false
	for kind, n := range skipped {
		if slices.Contains(known, kind) {
			continue
		}
		makesPods = makesPods || podMaker(kind)
		kinds = append(kinds, fmt.Sprintf("%s (%s)", kind, render.Thousands(n)))
	}
	if len(kinds) == 0 {
		return ""
	}
	slices.Sort(kinds)
	const few = 12
	text := strings.Join(kinds[:min(few, len(kinds))], ", ")
	if more := len(kinds) - few; more > 0 {
		text += fmt.Sprintf(" and %d other kinds", more)
	}
	text = state.Origin + ": not used, because they do not say what is on a node: " + text
	if makesPods {
		text += "; what counts are pods with spec.nodeName, which their controllers and the scheduler make"
	}
	if makesPods && state.Counts()["Pod"] == 0 {
		text += ": add what kubectl get pods -A -o yaml prints"
	}
	return text
}

// podMaker reports whether pods are made from objects of a kind.
func podMaker(kind string) bool {
	switch kind {
	case "Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps", "DaemonSet.apps", "Job.batch", "CronJob.batch", "ReplicationController":
		return true
	}
	return false
}
