package command

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// holding is a kind of holdings with the words for it. Names are completed if it has a resource. A path can begin at a start.
type holding struct {
	word, kind, resource, short string
	namespaced, start           bool
}

var holdings = []holding{
	{"node", attackpaths.Node, "nodes", "no", false, true},
	{"pod", attackpaths.Pod, "pods", "po", true, true},
	{"serviceaccount", attackpaths.ServiceAccount, "serviceaccounts", "sa", true, true},
	{"secret", attackpaths.Secret, "secrets", "", true, false},
	{"namespace", attackpaths.Namespace, "namespaces", "ns", false, false},
	{"user", attackpaths.User, "", "", false, false},
	{"group", attackpaths.Group, "", "", false, false},
}

// ParseHolding reads KIND/NAME or KIND/NAMESPACE/NAME.
func ParseHolding(text, namespace string) (attackpaths.Holding, error) {
	word, name, ok := strings.Cut(text, "/")
	at := holdingAt(word)
	if !ok || name == "" || at < 0 {
		var words []string
		for _, h := range holdings {
			words = append(words, h.word)
		}
		near := ""
		if at < 0 {
			near = DidYouMean(word, words)
		}
		return attackpaths.Holding{}, Usagef("%q is not KIND/NAME with KIND %s%s", text, render.Join(words, "or"), near)
	}
	of := holdings[at]
	switch {
	case of.namespaced:
		if inner, rest, ok := strings.Cut(name, "/"); ok {
			namespace, name = inner, rest
		}
		return attackpaths.Holding{Kind: of.kind, Namespace: namespace, Name: name}, nil
	case of.kind == attackpaths.Node:
		name = NodeName(name)
	}
	return attackpaths.Holding{Kind: of.kind, Name: name}, nil
}

// holdingAt is the place of a word in the table; -1 if it has none.
func holdingAt(word string) int {
	word = strings.ToLower(word)
	return slices.IndexFunc(holdings, func(h holding) bool {
		return word != "" && slices.Contains([]string{h.word, h.resource, h.short}, word)
	})
}
