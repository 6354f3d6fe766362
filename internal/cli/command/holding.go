package command

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

var holdingWords = map[string]string{
	"node": attackpaths.Node, "nodes": attackpaths.Node, "no": attackpaths.Node,
	"pod": attackpaths.Pod, "pods": attackpaths.Pod, "po": attackpaths.Pod,
	"serviceaccount": attackpaths.ServiceAccount, "serviceaccounts": attackpaths.ServiceAccount, "sa": attackpaths.ServiceAccount,
	"secret": attackpaths.Secret, "secrets": attackpaths.Secret,
	"namespace": attackpaths.Namespace, "namespaces": attackpaths.Namespace, "ns": attackpaths.Namespace,
	"user": attackpaths.User, "group": attackpaths.Group,
}

// holdingKinds are the words that errors name.
var holdingKinds = []string{"node", "pod", "serviceaccount", "secret", "namespace", "user", "group"}

// ParseHolding reads KIND/NAME or KIND/NAMESPACE/NAME.
func ParseHolding(text, namespace string) (attackpaths.Holding, error) {
	word, name, ok := strings.Cut(text, "/")
	kind, known := holdingWords[strings.ToLower(word)]
	if !ok || name == "" || !known {
		near := ""
		if !known {
			near = DidYouMean(word, holdingKinds)
		}
		return attackpaths.Holding{}, Usagef(
			"%q is not KIND/NAME with KIND %s%s", text, render.Join(holdingKinds, "or"), near)
	}
	switch kind {
	case attackpaths.Pod, attackpaths.ServiceAccount, attackpaths.Secret:
		if inner, rest, ok := strings.Cut(name, "/"); ok {
			namespace, name = inner, rest
		}
		return attackpaths.Holding{Kind: kind, Namespace: namespace, Name: name}, nil
	}
	if kind == attackpaths.Node {
		name = NodeName(name)
	}
	return attackpaths.Holding{Kind: kind, Name: name}, nil
}
