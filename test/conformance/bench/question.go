package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// questions are requests of one kind, all with the same expected decision.
type questions struct {
	kind string
	want authorizer.Decision
	attr []*authorizer.AttributesRecord
}

// check puts every question to an implementation, so that nothing wrong is measured.
func (q questions) check(s side, c implementation) error {
	for _, a := range q.attr {
		if got, reason, err := c.authorizer.Authorize(context.Background(), a); got != q.want || err != nil {
			return fmt.Errorf("%s, %s %s %s/%s as %s: got decision %d (%s, %v), want %d",
				s, a.Verb, a.Resource, a.Namespace, a.Name, a.User.GetName(), got, reason, err, q.want)
		}
	}
	return nil
}

// asking is one pod, and two nodes to ask about it: its own, and one that has
// no path to the objects that the pod's namespace shares.
type asking struct {
	layout
	placement
	own, other user.Info
}

// kindOfQuestion builds the requests of one kind from a pod.
type kindOfQuestion struct {
	name  string
	build func(asking) authorizer.AttributesRecord
}

// Each kind is one that kubelets ask.
var allowedKinds = []kindOfQuestion{
	{"get secret", func(a asking) authorizer.AttributesRecord { return a.as(a.own).get("secrets", secretName(a.owner)) }},
	{"watch secret", func(a asking) authorizer.AttributesRecord {
		return a.as(a.own).do("watch", "secrets", secretName(a.owner))
	}},
	{"get configmap", func(a asking) authorizer.AttributesRecord { return a.as(a.own).get("configmaps", configName(a.owner)) }},
	{"get claim", func(a asking) authorizer.AttributesRecord {
		return a.as(a.own).get("persistentvolumeclaims", claimName(a.owner))
	}},
	{"get volume", func(a asking) authorizer.AttributesRecord {
		return a.as(a.own).clusterScoped("get", "", "persistentvolumes", volumeName(a.owner))
	}},
	{"get pod", func(a asking) authorizer.AttributesRecord { return a.as(a.own).get("pods", podName(a.name)) }},
	{"list pods of the node", func(a asking) authorizer.AttributesRecord {
		r := a.as(a.own).clusterScoped("list", "", "pods", "")
		r.FieldSelectorRequirements = fields.Requirements{{Field: "spec.nodeName", Operator: selection.Equals, Value: nodeName(a.node)}}
		return r
	}},
	{"create token", func(a asking) authorizer.AttributesRecord {
		r := a.as(a.own).do("create", "serviceaccounts", accountName(a.owner))
		r.Subresource = "token"
		return r
	}},
	{"get own node", func(a asking) authorizer.AttributesRecord {
		return a.as(a.own).clusterScoped("get", "", "nodes", nodeName(a.node))
	}},
	{"update own lease", func(a asking) authorizer.AttributesRecord { return a.as(a.own).lease(nodeName(a.node)) }},
	{"get own csinode", func(a asking) authorizer.AttributesRecord {
		return a.as(a.own).clusterScoped("get", "storage.k8s.io", "csinodes", nodeName(a.node))
	}},
	{"create event", func(a asking) authorizer.AttributesRecord { return a.as(a.own).do("create", "events", "") }},
	{"list runtimeclasses", func(a asking) authorizer.AttributesRecord {
		return a.as(a.own).clusterScoped("list", "node.k8s.io", "runtimeclasses", "")
	}},
}

var refusedKinds = []kindOfQuestion{
	{"get secret of another node", func(a asking) authorizer.AttributesRecord { return a.as(a.other).get("secrets", secretName(a.owner)) }},
	{"get secret that does not exist", func(a asking) authorizer.AttributesRecord {
		return a.as(a.own).get("secrets", secretName(a.owner)+"-old")
	}},
	{"delete secret", func(a asking) authorizer.AttributesRecord {
		return a.as(a.own).do("delete", "secrets", secretName(a.owner))
	}},
	{"list secrets of a namespace", func(a asking) authorizer.AttributesRecord { return a.as(a.own).do("list", "secrets", "") }},
	{"get configmap of another node", func(a asking) authorizer.AttributesRecord {
		return a.as(a.other).get("configmaps", configName(a.owner))
	}},
	{"get claim of another node", func(a asking) authorizer.AttributesRecord {
		return a.as(a.other).get("persistentvolumeclaims", claimName(a.owner))
	}},
	{"get volume of another node", func(a asking) authorizer.AttributesRecord {
		return a.as(a.other).clusterScoped("get", "", "persistentvolumes", volumeName(a.owner))
	}},
	{"get pod of another node", func(a asking) authorizer.AttributesRecord { return a.as(a.other).get("pods", podName(a.name)) }},
	{"list all pods", func(a asking) authorizer.AttributesRecord { return a.as(a.own).clusterScoped("list", "", "pods", "") }},
	{"create token of another node", func(a asking) authorizer.AttributesRecord {
		r := a.as(a.other).do("create", "serviceaccounts", accountName(a.owner))
		r.Subresource = "token"
		return r
	}},
	{"get another node", func(a asking) authorizer.AttributesRecord {
		return a.as(a.other).clusterScoped("get", "", "nodes", nodeName(a.node))
	}},
	{"update another lease", func(a asking) authorizer.AttributesRecord { return a.as(a.other).lease(nodeName(a.node)) }},
	{"get another csinode", func(a asking) authorizer.AttributesRecord {
		return a.as(a.other).clusterScoped("get", "storage.k8s.io", "csinodes", nodeName(a.node))
	}},
	{"list deployments", func(a asking) authorizer.AttributesRecord {
		return a.as(a.own).clusterScoped("list", "apps", "deployments", "")
	}},
}

// asker builds the requests of one user.
type asker struct {
	asking
	user user.Info
}

func (a asking) as(u user.Info) asker { return asker{a, u} }

func (a asker) get(resource, name string) authorizer.AttributesRecord {
	return a.do("get", resource, name)
}

// do is a request in the namespace of the pod.
func (a asker) do(verb, resource, name string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: a.user, Verb: verb, APIVersion: "v1", Resource: resource,
		Namespace: namespaceName(a.namespace), Name: name, ResourceRequest: true,
	}
}

func (a asker) clusterScoped(verb, group, resource, name string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: a.user, Verb: verb, APIGroup: group, APIVersion: "v1", Resource: resource,
		Name: name, ResourceRequest: true,
	}
}

func (a asker) lease(name string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: a.user, Verb: "update", APIGroup: "coordination.k8s.io", APIVersion: "v1",
		Resource: "leases", Namespace: "kube-node-lease", Name: name, ResourceRequest: true,
	}
}

// ask makes count questions of each kind, about pods chosen at random, in an
// order of their own. Kinds about volumes are left out of layouts without.
func (l layout) ask(kinds []kindOfQuestion, want authorizer.Decision, count int) []questions {
	users := make([]user.Info, l.nodes)
	for i := range users {
		users[i] = kubelet(i)
	}
	unrelated := l.unrelatedNodes()
	random := rand.New(rand.NewPCG(2, 3))
	var all []questions
	for _, kind := range kinds {
		q := questions{kind: kind.name, want: want}
		for range count {
			p := l.place(random.IntN(l.pods))
			others := unrelated[p.namespace]
			a := asking{layout: l, placement: p, own: users[p.node], other: users[others[random.IntN(len(others))]]}
			attr := kind.build(a)
			q.attr = append(q.attr, &attr)
		}
		all = append(all, q.compact())
	}
	return all
}

func kubelet(node int) user.Info {
	return &user.DefaultInfo{Name: "system:node:" + nodeName(node), Groups: []string{"system:nodes", "system:authenticated"}}
}

// unrelatedNodes lists, by namespace, the nodes on which none of its pods is.
func (l layout) unrelatedNodes() [][]int {
	on := make([]map[int]bool, l.namespaces)
	for i := range on {
		on[i] = map[int]bool{}
	}
	for i := range l.pods {
		p := l.place(i)
		on[p.namespace][p.node] = true
	}
	unrelated := make([][]int, l.namespaces)
	for namespace, nodes := range on {
		for node := range l.nodes {
			if !nodes[node] {
				unrelated[namespace] = append(unrelated[namespace], node)
			}
		}
	}
	return unrelated
}

// mixed has the questions of all kinds, equally many of each, in random order.
func mixed(kind string, all []questions) questions {
	q := questions{kind: kind}
	for _, one := range all {
		q.want = one.want
		q.attr = append(q.attr, one.attr...)
	}
	random := rand.New(rand.NewPCG(4, 5))
	random.Shuffle(len(q.attr), func(i, j int) { q.attr[i], q.attr[j] = q.attr[j], q.attr[i] })
	return q.compact()
}

// first returns the first n questions.
func (q questions) first(n int) questions {
	q.attr = q.attr[:min(n, len(q.attr))]
	return q.compact()
}

// compact lays the questions out in memory in the order in which they are
// asked. A server has just read a request when it puts it to an authorizer; the
// processor, which fetches ahead what lies in order, then does not wait for the
// request, but for the graph.
func (q questions) compact() questions {
	records := make([]authorizer.AttributesRecord, len(q.attr))
	attr := make([]*authorizer.AttributesRecord, len(q.attr))
	for i := range records {
		records[i] = *q.attr[i]
		attr[i] = &records[i]
	}
	var text strings.Builder
	for i := range records {
		text.WriteString(records[i].Namespace + records[i].Name)
	}
	rest := text.String()
	for i := range records {
		r := &records[i]
		r.Namespace, rest = rest[:len(r.Namespace)], rest[len(r.Namespace):]
		r.Name, rest = rest[:len(r.Name)], rest[len(r.Name):]
	}
	q.attr = attr
	return q
}
