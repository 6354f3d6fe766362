package query

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// remedy returns what to change so that the answer becomes yes; nil unless it is no. It may read
// more of a cluster that is read in parts.
func remedy(ctx context.Context, s *command.Session, r ruling) (*verdict.Remedy, error) {
	if r.Answer != command.No {
		return nil, nil
	}
	var write *evaluate.Write
	if r.admission != nil {
		write = r.admission.write
	}
	remedy := s.Remedy(ctx, r.said, r.Request.Request(r.Identity), write)
	return &remedy, s.State.ReadErr()
}

// fixResult is an explanation of which people read only what to change.
type fixResult struct {
	ExplainResult
}

func (r fixResult) Text(p *render.Page) {
	p.Comment("%s by %s: %s", r.Request, r.Identity.Kind(), r.Answer)
	switch {
	case r.Answer == command.Unknown:
		p.Comment("nothing to fix before this can be decided: %s", r.Reason.Message)
		for _, m := range r.Missing {
			p.Comment("%s", m.Line())
		}
	case r.Reason.Remedy == nil && len(conditionsExceptName(r.Conditions)) > 0:
		left := strings.Join(requirements(conditionsExceptName(r.Conditions)), "; ")
		p.Comment("nothing to fix, if %s: %s", passesRestriction(r.Request), left)
	case r.Reason.Remedy == nil:
		p.Comment("nothing to fix: %s", r.Reason.Message)
	default:
		p.Comment("%s: %s", r.Reason.Code, r.Reason.Message)
		p.Remedy(*r.Reason.Remedy, r.request)
	}
}

// request prints changes of the request: the question in its new form, and the patch of the
// file with the object.
func (r fixResult) request(p *render.Page, changes []verdict.Change) {
	var attributes, object []verdict.Change
	for _, c := range changes {
		if strings.HasPrefix(c.Path, verdict.RequestPath+"/") {
			attributes = append(attributes, c)
		} else {
			object = append(object, c)
		}
	}
	if len(object) > 0 {
		p.Comment("write this %s instead:", r.Request.WrittenKind().Kind)
		p.Script("kubectl patch --local -f %s -o yaml --type=json -p %s", render.Shell(r.again.object), render.JSONPatch(object))
	}
	if len(attributes) > 0 {
		p.Comment("send this request instead:")
		p.Script("%s", r.again.command("explain", r.Request, r.Identity, attributes))
	}
}

// repeat has the parts of the command line that a changed question keeps.
type repeat struct {
	root   string
	object string
	node   bool
	// flags name the state, objects the written objects.
	flags, objects []string
}

// newRepeat reads the command line. Flags of the connection may have credentials and are left out.
func newRepeat(cmd *cobra.Command, objects *command.ObjectFlags) repeat {
	r := repeat{root: cmd.Parent().CommandPath(), object: objects.Object}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "node":
			r.node = true
		case "filename", "old-object":
			r.objects = append(r.objects, "--"+f.Name, f.Value.String())
		case "kubernetes-version", "feature-gates", "authorization-config", "context", "kubeconfig":
			r.flags = append(r.flags, "--"+f.Name, f.Value.String())
		case "from":
			if values, ok := f.Value.(pflag.SliceValue); ok {
				for _, v := range values.GetSlice() {
					r.flags = append(r.flags, "--from", v)
				}
			}
		}
	})
	return r
}

// command returns the command line of the question after changes of its attributes.
func (r repeat) command(name string, q command.Question, who command.Identity, changes []verdict.Change, more ...string) string {
	req := access.Request{Groups: who.Groups, Namespace: q.Namespace, Name: q.Name}
	evaluate.Apply(&req, changes)
	target := schema.GroupResource{Group: q.Group, Resource: q.Resource}.String()
	switch {
	case q.URL != "":
		target = q.URL
	case req.Name != "":
		target += "/" + req.Name
	}
	args := []string{q.Verb, target}
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	add("--subresource", q.Subresource)
	add("-n", req.Namespace)
	if q.Namespaced && req.Namespace == "" {
		args = append(args, "-A")
	}
	add("--field-selector", selectorText(q, changes))
	return r.line(name, args, who, req.Groups, append(r.objects, more...))
}

func (r repeat) line(name string, args []string, who command.Identity, groups, more []string) string {
	if r.node {
		args = append(args, "--node", who.Node)
	} else {
		args = append(args, "--as", who.User)
		if !slices.Equal(groups, command.WithImpliedGroups(who.User, nil)) {
			for _, group := range groups {
				args = append(args, "--as-group", group)
			}
		}
		if who.UID != "" {
			args = append(args, "--as-uid", who.UID)
		}
		if who.TokenNode != "" {
			args = append(args, "--token-node", who.TokenNode)
		}
	}
	words := []string{r.root, name}
	for _, arg := range slices.Concat(args, r.flags, more) {
		words = append(words, render.Shell(arg))
	}
	if line := strings.Join(words, " "); render.Exact(line) {
		return line
	}
	return "# the question has characters that cannot be shown"
}

func selectorText(q command.Question, changes []verdict.Change) string {
	text := q.FieldSelector
	for _, c := range changes {
		if c.Path == verdict.RequestPath+"/fieldSelector" && json.Unmarshal(c.Value, &text) != nil {
			return q.FieldSelector
		}
	}
	return text
}
