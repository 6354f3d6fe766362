package attackpaths

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// SameNamespace stands for the namespace in which a right of [CustomTechnique].AllowedBy holds.
const SameNamespace = "{namespace}"

// MaxCustomTechniques is how many custom techniques a cluster may have, and how many entries each
// of their lists.
const MaxCustomTechniques = 100

// CustomTechnique is a technique that the user adds, for the rights that an operator's
// controllers have and use for whoever writes their resources.
type CustomTechnique struct {
	// Technique has a code that no other technique has.
	Technique
	// AllowedBy are requests of which any is enough.
	AllowedBy []CustomRequest
	// With are requests that are needed besides, each of them. Another identity of the attacker
	// may make them.
	With []CustomRequest
	// Gives is what the attacker then owns. The namespace of a service account or secret may be
	// SameNamespace, or "*" for every namespace; the name of a namespace may be SameNamespace.
	// Names of nodes, service accounts, secrets and namespaces may end in "*", for all that
	// begin so. What the cluster does not have is not given; see Graph.Gaps.
	Gives []Holding
	// DependsOn is what else decides, which the state does not show. Without it, and without
	// admission that is asked, the steps are certain.
	DependsOn string
	// Remedy says how to take the technique away.
	Remedy string
}

// CustomRequest is a kind of request, of which any is enough.
type CustomRequest struct {
	// Verbs has at least one verb.
	Verbs                           []string
	APIGroup, Resource, Subresource string
	// ClusterScoped is true for resources without a namespace.
	ClusterScoped bool
	// Namespace is empty for any namespace. In CustomTechnique.With it may be SameNamespace.
	Namespace string
	// Name is the object's; empty for any object. A right that is limited to the name of
	// an object counts as possible then: the state does not show whether there is one.
	Name string
}

// Gap is something that a custom technique names and that the cluster does not have, so that the
// technique does not lead there.
type Gap struct {
	Technique Code
	// Lacks says in one line what the cluster does not have.
	Lacks string
}

// checkCustom checks what the graph relies on.
func checkCustom(all []CustomTechnique) error {
	if len(all) > MaxCustomTechniques {
		return fmt.Errorf("attack paths: %d custom techniques, want at most %d", len(all), MaxCustomTechniques)
	}
	codes := map[Code]bool{"": true}
	for _, t := range techniques {
		codes[t.Code] = true
	}
	for i := range all {
		t := &all[i]
		if codes[t.Code] {
			return fmt.Errorf("attack paths: custom technique %q: want a code that no other technique has", t.Code)
		}
		codes[t.Code] = true
		if err := t.check(); err != nil {
			return fmt.Errorf("attack paths: custom technique %s: %w", t.Code, err)
		}
	}
	return nil
}

func (t *CustomTechnique) check() error {
	if len(t.AllowedBy) == 0 || len(t.Gives) == 0 {
		return errors.New("want at least one request and one holding")
	}
	if max(len(t.AllowedBy), len(t.With), len(t.Gives)) > MaxCustomTechniques {
		return fmt.Errorf("a list has more than %d entries", MaxCustomTechniques)
	}
	related := slices.ContainsFunc(t.With, func(r CustomRequest) bool { return r.Namespace == SameNamespace })
	for _, h := range t.Gives {
		related = related || h.Namespace == SameNamespace || h.Name == SameNamespace
		if err := checkGiven(h); err != nil {
			return err
		}
	}
	for _, r := range slices.Concat(t.AllowedBy, t.With) {
		if len(r.Verbs) == 0 || r.Resource == "" {
			return errors.New("a request has no verb or no resource")
		}
	}
	for _, r := range t.AllowedBy {
		if r.Namespace == SameNamespace || related && r.ClusterScoped {
			return fmt.Errorf("%s is the namespace of a right that has none", SameNamespace)
		}
	}
	return nil
}

func checkGiven(h Holding) error {
	switch h.Kind {
	case ClusterAdmin:
	case Node, Group, Namespace, ServiceAccount, Secret, User:
		if h.Name == "" {
			return fmt.Errorf("a holding of kind %s has no name", h.Kind)
		}
		_, _, isAccount := accountOfUser(h.Name)
		if h.Kind == User && (isAccount || strings.HasPrefix(h.Name, nodeidentity.UserPrefix)) {
			return fmt.Errorf("user %s: want a holding of kind Node or ServiceAccount", h.Name)
		}
	default:
		return fmt.Errorf("holdings of kind %q cannot be given", h.Kind)
	}
	return nil
}

// isCustom reports whether a row is a custom technique.
func (r row) isCustom() bool { return int(r) > len(techniques) }

// customRow is the row of the custom technique at a place.
func customRow(place int32) row { return row(len(techniques) + 1 + int(place)) }

// codeOf is the code of a row.
func (g *Graph) codeOf(r row) Code {
	if r.isCustom() {
		return g.custom[int(r)-len(techniques)-1].Code
	}
	return r.code()
}

// Gaps lists what custom techniques name and the cluster does not have, in the order of the
// techniques.
func (g *Graph) Gaps() []Gap { return slices.Clone(g.gaps) }
