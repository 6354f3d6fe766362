package contain

import (
	"fmt"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/learn"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
)

// reportAccount says in a suggestion whether the account exists. Roles can be bound to a name that no service
// account has, so without this a misspelt name would look like an account without rights.
func reportAccount(a *command.App, s *command.Session, suggestion *learn.Suggestion, namespace, name string) {
	exists, why := accountExists(s, namespace, name)
	suggestion.AccountExists = exists
	if exists == learn.Yes {
		return
	}
	suggestion.Notes = append([]string{why}, suggestion.Notes...)
	if exists == learn.Unknown && suggestion.Requests > 0 {
		a.Warn("%s; it did when the logs were written", why) // so the name is right, and no rule depends on it
		return
	}
	a.Failure("%s", why)
	a.Status = command.StatusUndecided
}

// accountExists reports whether the state has a service account, and if not, what to do about it.
func accountExists(s *command.Session, namespace, name string) (exists learn.Existence, why string) {
	if _, ok := s.State.ServiceAccount(namespace, name); ok {
		return learn.Yes, ""
	}
	account := namespace + "/" + name
	unknown := fmt.Sprintf("it is unknown whether service account %s exists: ", account)
	for _, m := range s.State.Missing() {
		if m.Kind == source.ServiceAccounts {
			return learn.Unknown, unknown + command.NewMissing(m).Line()
		}
	}
	known := s.State.ServiceAccountNames()
	if len(known) == 0 && !s.State.Complete() {
		return learn.Unknown, unknown + "there are no service accounts in " + s.State.Origin + ": add what " +
			"kubectl get serviceaccounts -A -o yaml prints with --from, or use a snapshot"
	}
	var names, elsewhere []string
	for _, n := range known {
		names = append(names, n.Namespace+"/"+n.Name)
		if n.Name == name {
			elsewhere = append(elsewhere, n.Namespace+"/"+n.Name)
		}
	}
	hint := command.DidYouMean(account, names)
	if len(elsewhere) == 1 {
		hint = "; did you mean " + elsewhere[0] + "?"
	}
	if hint == "" {
		hint = ": check the namespace and the name"
	}
	return learn.No, fmt.Sprintf("service account %s does not exist in %s (%s)%s",
		account, s.State.Origin, render.Count(len(known), "service account"), hint)
}
