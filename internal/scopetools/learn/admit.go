package learn

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// admit decides what authorization leaves to admission: the name of a created object, and what
// NodeRestriction says of a write as the node.
func (c *Checker) admit(r *Request, asked *access.Request, answer nodescope.Answer) bool {
	operation := noderestriction.OperationOf(asked.Verb)
	if operation == "" || asked.Verb == "deletecollection" || !asked.ResourceRequest || r.Node == "" || r.Impersonates != "" {
		return true
	}
	key := findingKey{r.AccountNamespace + "/" + r.AccountName, Finding{
		Outcome: Undecided, Scope: answer.Scope, Rule: answer.Rule, Request: describe(asked, false),
	}}
	write := &noderestriction.Request{
		User: asked.User, Groups: asked.Groups, Extra: asked.Extra, Operation: operation, Group: asked.Group, Version: asked.Version,
		Resource: asked.Resource, Subresource: asked.Subresource, Namespace: asked.Namespace, Name: cmp.Or(asked.Name, r.CreatedName),
	}
	if admitted := c.names.Admit(context.Background(), write); admitted.Refused() {
		key.Code, key.Scope, key.Rule = admitted.Code, admitted.Scope, admitted.Rule
		key.Outcome = Refused
		named := admitted.Code == nodescope.ScopeNameNotNode || admitted.Code == nodescope.ScopePodNotOnNode
		pod := PodOnNode{Namespace: write.Namespace, Name: write.Name, Node: r.Node}
		switch {
		case named && write.Name == "":
			key.Outcome, key.Why = Undecided, "the log does not show the name of the created object"
		case named && c.admitsWith(write, pod):
			if c.servedAsKnown(r, asked, answer) {
				c.waitFor(key, pod, r, asked)
			}
			return false
		}
		c.find(key, r, asked)
		return false
	}
	if answer.Uses&nodescope.UsesNodeAuthorizer == 0 || c.evaluator.Node.DecideAs(r.Node, asked).Decision != verdict.Allow {
		return true // asNode does not let it pass
	}
	if other := c.withoutAsNode.Decide(asked); !other.Refused() {
		if admitted := c.withoutAsNode.Admit(context.Background(), write); !admitted.Refused() {
			return true
		}
	}
	user, groups := nodeidentity.User(r.Node)
	asNode := *write
	asNode.User, asNode.Groups, asNode.Extra = user, groups, nil
	_, conditions := c.evaluator.Restriction.Consider(context.Background(), &asNode, noderestriction.Open{
		Object: operation != noderestriction.Delete, OldObject: operation != noderestriction.Create, Name: write.Name == "",
	})
	if len(conditions) == 0 {
		return true
	}
	key.Code, key.Why = nodescope.ScopeNotAsNode, "NodeRestriction decides by the object, which is not taken from the log"
	c.find(key, r, asked)
	return false
}

// dependsOnPod reports whether a refused request passes if the pod that it names is on the node.
func (c *Checker) dependsOnPod(asked *access.Request, pod PodOnNode, answer nodescope.Answer) bool {
	isPod := asked.Group == "" && asked.Resource == "pods"
	if !isPod && answer.Uses&nodescope.UsesPods == 0 || !pod.Complete() {
		return false
	}
	with := c.with(pod).Decide(asked)
	return !with.Refused()
}

// admitsWith reports whether a refused write passes if the pod whose name its object has is on the node.
func (c *Checker) admitsWith(write *noderestriction.Request, pod PodOnNode) bool {
	if !pod.Complete() {
		return false
	}
	with := c.with(pod).Admit(context.Background(), write)
	return !with.Refused()
}

// with returns an authorizer for a cluster that has only one pod.
func (c *Checker) with(pod PodOnNode) *nodescope.Authorizer {
	g := graph.New()
	g.SetPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Spec: corev1.PodSpec{NodeName: pod.Node},
	})
	return nodescope.New(c.policy, c.evaluator.State.Aggregation, g, nodeauthz.New(g, c.evaluator.Features), nil)
}

// unknownObject says why the Node authorizer cannot be asked about a request; empty if it can.
func (c *Checker) unknownObject(asked *access.Request, answer nodescope.Answer) string {
	if answer.Uses&nodescope.UsesNodeAuthorizer == 0 || answer.NodeCode != nodeauthz.NoPathToObject {
		return ""
	}
	kind, known := nodeauthz.KindOf(asked.Group, asked.Resource)
	if known && c.evaluator.State.Graph.Has(kind, asked.Namespace, asked.Name) {
		return ""
	}
	return "the state has no pod that needs the object: the node may have had one"
}
