package remedies

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
)

// newWrite converts a generated write.
func newWrite(w *generate.Write) request {
	req := noderestriction.Request{
		User: w.User, UID: w.UID, Groups: w.Groups, Extra: w.Extra, Operation: noderestriction.Operation(w.Operation),
		Group: w.Group, Version: w.Version, Resource: w.Resource, Subresource: w.Subresource, Namespace: w.Namespace, Name: w.Name,
		Object: w.Object, OldObject: w.OldObject,
	}
	verbs := map[string]string{"CREATE": "create", "UPDATE": "update", "DELETE": "delete", "CONNECT": "create"}
	return request{
		access: access.Request{
			User: w.User, UID: w.UID, Groups: w.Groups, Extra: w.Extra, Verb: verbs[w.Operation], ResourceRequest: true,
			Group: w.Group, Version: w.Version, Resource: w.Resource, Subresource: w.Subresource, Namespace: w.Namespace, Name: w.Name,
		},
		write: &evaluate.Write{Request: req},
	}
}

// newQuestion converts a generated request. A write is one of any object, as in a question
// before the request.
func newQuestion(q *generate.Request) request {
	r := request{access: access.Request{
		User: q.User, Groups: q.Groups, Verb: q.Verb, ResourceRequest: q.ResourceRequest(), Group: q.Group, Version: "v1",
		Resource: q.Resource, Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name, FieldSelector: q.FieldSelector,
		Path: q.Path,
	}}
	operations := map[string]noderestriction.Operation{
		"create": noderestriction.Create, "update": noderestriction.Update, "patch": noderestriction.Update,
		"delete": noderestriction.Delete, "deletecollection": noderestriction.Delete,
	}
	connects := slices.Contains([]string{"pods", "services", "nodes"}, q.Resource) && q.Group == "" &&
		slices.Contains([]string{"exec", "attach", "portforward", "proxy"}, q.Subresource)
	if operation := operations[q.Verb]; operation != "" && q.ResourceRequest() && !connects {
		r.write = &evaluate.Write{
			Request: noderestriction.Request{
				User: q.User, Groups: q.Groups, Operation: operation, Group: q.Group, Version: "v1", Resource: q.Resource,
				Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name,
			},
			Open: noderestriction.Open{
				Object: operation != noderestriction.Delete, OldObject: operation != noderestriction.Create,
				Name: q.Name == "" && q.Verb != "deletecollection",
			},
		}
	}
	return r
}
