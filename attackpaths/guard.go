package attackpaths

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// attempt is one way to make a step: the writes of the attacker, and those that Kubernetes' own
// controllers make because of them.
type attempt struct {
	requests []*Request
	// dependsOn is what else decides whether this way has the effect.
	dependsOn string
}

// review is what admission policies decide about an attempt: those that refuse it, and those that are not decided, with
// the reason.
type review struct{ refused, open []string }

// covering are the policies that are asked about a kind of request.
type coveringKey struct {
	write     inventory.Write
	namespace string
}

// guardKey is what the text about a step's guards depends on.
type guardKey struct {
	right           right
	namespace, what string
}

// guardsFor names what admission is asked about a request that needs a right, and that has to
// be like one of the attempts. What tells apart the attempts with the same right.
func (b *builder) guardsFor(r right, namespace, what string, attempts func() []attempt) string {
	k := guardKey{r, namespace, what}
	text, ok := b.guardTexts[k]
	if !ok {
		text = allOf(b.quota(r, namespace), b.guarded(writeOf(r), namespace), b.policyGuards(attempts))
		b.guardTexts[k] = text
	}
	return text
}

// newBindingGuards is guardsOf for a new binding of a role.
func (b *builder) newBindingGuards(r right, namespace string, role int32) string {
	ref := b.roles[role].Role
	return b.guardsFor(r, namespace, ref.String(), func() []attempt { return b.newBinding(r, namespace, ref) })
}

// changedBindingGuards is guardsOf for another subject of a binding.
func (b *builder) changedBindingGuards(r right, bound rbac.BoundRole) string {
	return b.guardsFor(r, bound.Binding.Namespace, bound.Binding.String(), func() []attempt { return b.changedBinding(r, bound) })
}

// changedRoleGuards is guardsOf for another rule of a role.
func (b *builder) changedRoleGuards(r right, role int32) string {
	ref := b.roles[role].Role
	return b.guardsFor(r, ref.Namespace, ref.String(), func() []attempt { return b.changedRole(r, b.roles[role]) })
}

// containerGuards is guardsOf for a container that is added to a pod.
func (b *builder) containerGuards(p *inventory.Pod, privileged bool) string {
	what := "others"
	switch {
	case privileged && p.Ephemeral:
		what = "privileged, others"
	case privileged:
		what = "privileged"
	case !p.Ephemeral:
		what = "no others"
	}
	return b.guardsFor(addContainers, p.Namespace, what, func() []attempt { return b.addedContainer(p.Namespace, privileged, p.Ephemeral) })
}

// podGuards names what admission is asked about any pod that is made through a right.
func (b *builder) podGuards(r right, namespace string) string {
	pods := allOf(b.quota(createPods, namespace), b.guarded(writeOf(createPods), namespace))
	if r == createPods {
		return allOf(pods, b.useGuards(key{variant: uint16(r), name: namespace}, anyPod, ""))
	}
	workload := allOf(b.quota(r, namespace), b.guarded(writeOf(r), namespace))
	if _, patches, _ := workloadOf(r); patches {
		pods, workload = workload, pods
	}
	return allOf(pods, workload, b.useGuards(key{variant: uint16(r), name: namespace}, anyPod, ""))
}

// quota names a quota that is full, so that the API server creates no more objects until some are gone.
func (b *builder) quota(r right, namespace string) string {
	kind := &requestKinds[r]
	if !kind.namespaced || kind.subresource != "" || !slices.Contains(kind.verbs, "create") {
		return ""
	}
	if full := b.cluster.Inventory.FullQuota(namespace, kind.group, kind.resource); full != "" {
		return "whether ResourceQuota " + full + " has room again for " + kind.resource
	}
	return ""
}

// useGuards says which policies decide about pods for a use, made through the right that gives
// the vertex of a namespace.
func (b *builder) useGuards(namespace key, use podUse, name string) string {
	if namespace.variant == 0 || !b.splits(namespace.name) {
		return ""
	}
	return b.policyGuards(func() []attempt { return b.attemptsOfPods(right(namespace.variant), namespace.name, use, name) })
}

// namespaceVertex is the right to have pods made in a namespace. Where policies look at pods or
// at what makes them, it is another vertex for each right that gives it.
func (b *builder) namespaceVertex(namespace string, r right) vertex {
	return b.vertex(b.namespaceKey(namespace, r))
}

func (b *builder) namespaceKey(namespace string, r right) key {
	k := key{kind: isNamespace, name: namespace}
	if b.splits(namespace) {
		k.variant = uint16(r)
	}
	return k
}

// splits reports whether a policy is asked about the pods of a namespace or what makes them.
func (b *builder) splits(namespace string) bool {
	split, ok := b.split[namespace]
	if !ok {
		for r := createPods; r <= patchCronJobs; r++ {
			split = split || len(b.asked(writeOf(r), b.namedLabels(namespace), true)) > 0
		}
		b.split[namespace] = split
	}
	return split
}

// policyGuards says which admission policies a step depends on: none if one of the attempts
// passes all of them. The others that could be sent are not known, so that a step whose every
// attempt is refused is still possible.
func (b *builder) policyGuards(attempts func() []attempt) string {
	if !b.evaluatesPolicies() {
		return ""
	}
	var reviews []review
	best := ""
	for _, a := range attempts() {
		r := b.review(a)
		reviews = append(reviews, r)
		if len(r.refused) > 0 {
			continue
		}
		text := allOf(append(r.open, a.dependsOn)...)
		if text == "" {
			return ""
		}
		if best == "" || strings.Count(text, "; ") < strings.Count(best, "; ") {
			best = text
		}
	}
	if best != "" {
		return best
	}
	return refusals(reviews)
}

// evaluatesPolicies reports whether there are policies, and something that evaluates them.
func (b *builder) evaluatesPolicies() bool {
	return b.cluster.Policies != nil && slices.ContainsFunc(b.admission, isPolicy)
}

func isPolicy(a inventory.Admission) bool { return a.Policy != nil }

// review asks the policies about each request of an attempt.
func (b *builder) review(a attempt) review {
	var all review
	for _, request := range a.requests {
		for _, policy := range b.covering(request) {
			answer := b.cluster.Policies.Review(policy, request)
			text := policy.String()
			switch {
			case answer.Decision == Refused:
				all.refused = appendNew(all.refused, text)
			case answer.Decision == Undecided && answer.Why != "":
				all.open = appendNew(all.open, text+", which "+answer.Why)
			case answer.Decision == Undecided:
				all.open = appendNew(all.open, text)
			}
		}
	}
	return all
}

// covering lists the policies that may be asked about a request.
func (b *builder) covering(request *Request) []*inventory.Admission {
	isNamespace := request.Kind.Kind == "Namespace"
	k := coveringKey{inventory.Write{
		Operation: request.Operation, Group: request.Resource.Group, Resource: request.Resource.Resource,
		Subresource: request.Subresource, Namespaced: request.Namespace != "" && !isNamespace,
	}, request.Namespace}
	if isNamespace {
		return b.asked(k.write, nil, true) // its labels change
	}
	list, ok := b.covered[k]
	if !ok {
		list = b.asked(k.write, request.NamespaceLabels, true)
		b.covered[k] = list
	}
	return list
}

// namedGuards names the webhooks and policies that are asked about a write of which the object is
// not known.
func (b *builder) namedGuards(w inventory.Write, namespace string) string {
	return allOf(b.guarded(w, namespace), namesOf(b.asked(w, b.namedLabels(namespace), true)))
}

// guarded names the webhooks, and the policies that are not evaluated, that are asked about a write; empty if there are none.
func (b *builder) guarded(w inventory.Write, namespace string) string {
	labels := map[string]string{}
	if namespace != "" {
		labels = withName(b.labels[namespace], namespace)
	}
	return namesOf(b.asked(w, labels, false))
}

// asked lists the policies that are evaluated, or what else may be asked about a kind of request, in a namespace with labels; nil if they
// are not known.
func (b *builder) asked(w inventory.Write, labels map[string]string, evaluated bool) []*inventory.Admission {
	var list []*inventory.Admission
	for i := range b.admission {
		a := &b.admission[i]
		if (isPolicy(*a) && b.cluster.Policies != nil) == evaluated && a.Covers(w, labels) {
			list = append(list, a)
		}
	}
	return list
}

func namesOf(all []*inventory.Admission) string {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = a.String()
	}
	return strings.Join(names, "; ")
}

// appendNew appends the texts that a list does not have.
func appendNew(all []string, texts ...string) []string {
	for _, text := range texts {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// refusals says which policies refused all attempts, alone or together.
func refusals(reviews []review) string {
	const tried = "refused each object that was tried"
	var some, texts, open []string
	for _, r := range reviews {
		some, open = appendNew(some, r.refused...), appendNew(open, r.open...)
	}
	for _, policy := range some {
		if !slices.ContainsFunc(reviews, func(r review) bool { return !slices.Contains(r.refused, policy) }) {
			texts = append(texts, policy+", which "+tried)
		}
	}
	if len(texts) == 0 {
		texts = []string{strings.Join(some, " and ") + ", which together " + tried}
	}
	slices.Sort(texts)
	slices.Sort(open)
	return strings.Join(append(texts, open...), "; ")
}

// writeOf is the write that a right allows.
func writeOf(r right) inventory.Write { return requestKinds[r].write() }
