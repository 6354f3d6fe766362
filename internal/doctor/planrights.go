package doctor

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// shared returns the bindings that grant all nodes so much that refusals of the Node authorizer have
// no effect.
func (p *planner) shared() []excess {
	return selected(p.excesses(), excess.sharedByNodes)
}

func (x excess) sharedByNodes() bool {
	return x.finding.Code == SystemNodeBinding || x.finding.Code == NodesMasters || x.finding.Code == EveryoneMasters
}

// object returns the name of a binding: "ClusterRoleBinding system:node".
func (b *Binding) object() string {
	if b.Namespace == "" {
		return "ClusterRoleBinding " + b.Name
	}
	return "RoleBinding " + qualified(b.Namespace, b.Name)
}

func (p *planner) withdraw() (Check, []Action) {
	check, do := p.withdrawn(p.shared(), "no binding gives nodes what system:node has, or everything")
	for i := range p.setups {
		if s := &p.setups[i]; s.asks(modeAlwaysAllow) {
			check.Status = StatusToDo
			check.Evidence = append(check.Evidence, s.name+" allows everything that no other authorizer denies")
			do = append(do, Action{Text: s.manifest() + ": " + s.recommended() + ", when all who use the cluster have roles"})
		}
	}
	if check.Status == StatusDone {
		return check, nil
	}
	return check, append(do, Action{
		Text:     "see that it had effect: the answer is no",
		Commands: []string{"kubectl auth can-i list secrets --all-namespaces --as=system:node:NAME --as-group=system:nodes"},
	}, Action{
		Text: "watch the log for another day; if something is refused that must not be, put the binding back",
	})
}

func (p *planner) cleanUp() (Check, []Action) {
	notShared := slices.DeleteFunc(p.excesses(), excess.sharedByNodes)
	return p.withdrawn(notShared, "no binding gives nodes, or everyone, what they should not have")
}

func (p *planner) withdrawn(list []excess, none string) (Check, []Action) {
	lacking := p.met[CheckBindings]
	switch {
	case len(list) > 0:
	case !p.cluster.RBACKnown:
		check, do := Check{Status: StatusUnknown}, []Action{}
		for _, m := range p.rightsLack() {
			check.Evidence = append(check.Evidence, m.Resource+": "+m.Reason)
			do = append(do, Action{Text: m.Remedy})
		}
		return check, do
	case len(lacking) > 0:
		return Check{StatusUnknown, []string{lacking[0].Reason}}, []Action{{Text: lacking[0].Remedy}}
	default:
		return Check{StatusDone, []string{none}}, nil
	}
	check := Check{Status: StatusToDo}
	var do []Action
	for _, group := range grouped(list, func(x excess) string { return x.binding.object() }) {
		for _, x := range group {
			check.Evidence = append(check.Evidence, fmt.Sprintf("%s: %s (%s)", x.binding.object(), x.finding.Message, x.finding.Code))
		}
		do = append(do, removalAction(group))
	}
	return check, do
}

// removalAction returns the commands that remove subjects from a binding, and those that restore them. It
// removes the last subject first, so that the indices of the others do not change.
func removalAction(group []excess) Action {
	b := group[0].binding
	var subjects []int
	var names []string
	for _, x := range group {
		subjects, names = append(subjects, x.subject), append(names, x.audience.String())
	}
	slices.Sort(subjects)
	subjects = slices.Compact(subjects)
	action := Action{Text: fmt.Sprintf("take %s out of %s", some(slices.Compact(names)), b.object())}
	if len(subjects) >= len(b.Subjects) {
		create := append(b.kubectl("create"), "--"+strings.ToLower(b.Role.Kind)+"="+b.Role.Name)
		for _, s := range b.Subjects {
			create = append(create, subjectFlag(s))
		}
		action.Commands, action.Undo = []string{shell(b.kubectl("delete")...)}, []string{shell(create...)}
		return action
	}
	for _, subject := range slices.Backward(subjects) {
		action.Commands = append(action.Commands, withdrawal(b, subject))
	}
	for _, subject := range subjects {
		action.Undo = append(action.Undo, shell(append(b.kubectl("set", "subject"), subjectFlag(b.Subjects[subject]))...))
	}
	return action
}

func (b *Binding) kubectl(verbs ...string) []string {
	if b.Namespace == "" {
		return slices.Concat([]string{"kubectl"}, verbs, []string{"clusterrolebinding", b.Name})
	}
	return slices.Concat([]string{"kubectl", "-n", b.Namespace}, verbs, []string{"rolebinding", b.Name})
}

func subjectFlag(s rbacv1.Subject) string {
	switch s.Kind {
	case rbacv1.GroupKind:
		return "--group=" + s.Name
	case rbacv1.ServiceAccountKind:
		return "--serviceaccount=" + s.Namespace + ":" + s.Name
	}
	return "--user=" + s.Name
}
