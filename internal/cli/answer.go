package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/render"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// The answers to a question.
const (
	yes     = "yes"
	no      = "no"
	unknown = "unknown"
)

// answer is the outcome of one question.
type answer struct {
	// Answer is "yes", "no", or "unknown" when what could not be read might
	// turn a no into a yes.
	Answer   string           `json:"answer"`
	Identity identity         `json:"identity"`
	Request  question         `json:"request"`
	Decision verdict.Decision `json:"decision"`
	// DecidedBy is the authorizer that allowed or denied; empty when none did.
	DecidedBy string `json:"decidedBy,omitempty"`
	// Reason is the deciding authorizer's; when none decided, that of the Node
	// authorizer for nodes and of RBAC for other users.
	Reason verdict.Reason `json:"reason"`
	// Missing is what could not be read and could change the answer.
	Missing []missing `json:"missing,omitempty"`
	State   stateInfo `json:"state"`
}

// stateInfo says what an answer was taken from.
type stateInfo struct {
	Origin            string `json:"origin"`
	KubernetesVersion string `json:"kubernetesVersion"`
	// AuthorizationConfig is the file that the chain was made from; empty for
	// the usual one.
	AuthorizationConfig string `json:"authorizationConfig,omitempty"`
	// Authorizers are those of the chain, in order.
	Authorizers []string `json:"authorizers"`
}

// missing is a resource that could not be read.
type missing struct {
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
}

func (m missing) String() string { return m.Resource + ": " + m.Reason }

func (s *session) info() stateInfo {
	return stateInfo{
		Origin:              s.state.Origin,
		KubernetesVersion:   s.features.Minor().String(),
		AuthorizationConfig: s.configured,
		Authorizers:         visible(s.chain.Names()),
	}
}

// visible leaves out the link that is not configurable and seldom matters.
func visible(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == chain.NameMasters })
}

// decide puts the question to the chain.
func (s *session) decide(ctx context.Context, who identity, q question) (answer, chain.Result) {
	req := q.request(who)
	result, _ := s.chain.Explain(ctx, req) // the opinions tell the errors
	result.Opinions = slices.DeleteFunc(result.Opinions, func(o chain.Opinion) bool {
		return o.Authorizer == chain.NameMasters && o.Decision == verdict.NoOpinion
	})
	a := answer{
		Answer: no, Identity: who, Request: q, Decision: result.Decision, DecidedBy: result.DecidedBy,
		Reason: mainReason(result, who), State: s.info(),
	}
	why := doubt(result)
	switch {
	case s.needsRBAC(result) && (!who.isNode || s.configured != ""):
		a.undecided(s.rbacNeeded(who))
	case why != "":
		a.undecided(verdict.Reason{Code: codeEvaluationFailed, Message: why})
	case result.Decision == verdict.Allow:
		a.Answer = yes
	}
	if result.Decision != verdict.Allow {
		if a.Missing = s.missingFor(req, result); len(a.Missing) > 0 {
			a.Answer = unknown
		}
	}
	return a, result
}

// undecided takes back what the chain decided, because it rests on an error.
func (a *answer) undecided(why verdict.Reason) {
	a.Answer, a.Decision, a.DecidedBy, a.Reason = unknown, verdict.NoOpinion, "", why
}

// Codes of questions that could not be decided.
const (
	codeEvaluationFailed verdict.Code = "EvaluationFailed"
	codeRBACNotLoaded    verdict.Code = "RBACNotLoaded"
)

func (s *session) rbacNeeded(who identity) verdict.Reason {
	why := "RBAC decides about " + who.kind()
	if s.configured != "" {
		why = s.configured + " asks RBAC"
	}
	return verdict.Reason{
		Code:    codeRBACNotLoaded,
		Message: fmt.Sprintf("%s, and %s has no roles and bindings", why, s.state.Origin),
		Hint:    "add the roles and bindings with --from, or ask the cluster",
	}
}

// mainReason picks the opinion that matters most to people.
func mainReason(result chain.Result, who identity) verdict.Reason {
	wanted := result.DecidedBy
	if wanted == "" && who.isNode {
		wanted = chain.NameNode
	}
	for _, o := range result.Opinions {
		if o.Authorizer == wanted {
			return o.Reason
		}
	}
	if len(result.Opinions) == 0 {
		return verdict.Reason{}
	}
	return result.Opinions[len(result.Opinions)-1].Reason
}

// missingFor lists what could not be read and might have allowed a request
// about which nobody had an opinion.
func (s *session) missingFor(req *nodeauthz.Request, result chain.Result) []missing {
	relevant := map[schema.GroupResource]bool{}
	if kind, ok := nodeauthz.KindOf(req.Group, req.Resource); ok && failedForPath(result) {
		relevant = holders(kind)
	}
	rbac := s.configured == "" || asked(result, chain.NameRBAC)
	return s.missingWhere(func(m source.Missing) bool { return m.RBAC && rbac || relevant[m.Resource] })
}

// missing lists what could not be read among the resources given, and of RBAC.
func (s *session) missing(relevant map[schema.GroupResource]bool) []missing {
	return s.missingWhere(func(m source.Missing) bool { return m.RBAC || relevant[m.Resource] })
}

func (s *session) missingWhere(relevant func(source.Missing) bool) []missing {
	var found []missing
	for _, m := range s.state.Missing() {
		if relevant(m) {
			found = append(found, missing{Resource: m.Resource.String(), Reason: m.Reason})
		}
	}
	return found
}

func failedForPath(result chain.Result) bool {
	return slices.ContainsFunc(result.Opinions, func(o chain.Opinion) bool { return o.Code == nodeauthz.NoPathToObject })
}

// holders are the resources whose objects relate those of a kind to nodes.
func holders(kind graph.Kind) map[schema.GroupResource]bool {
	pods := schema.GroupResource{Resource: "pods"}
	volumes := schema.GroupResource{Resource: "persistentvolumes"}
	switch kind {
	case graph.Secret, graph.PersistentVolume:
		return map[schema.GroupResource]bool{pods: true, volumes: true}
	case graph.VolumeAttachment:
		return map[schema.GroupResource]bool{{Group: "storage.k8s.io", Resource: "volumeattachments"}: true}
	case graph.ResourceSlice:
		return map[schema.GroupResource]bool{{Group: "resource.k8s.io", Resource: "resourceslices"}: true}
	case graph.PodCertificateRequest:
		return map[schema.GroupResource]bool{{Group: "certificates.k8s.io", Resource: "podcertificaterequests"}: true}
	}
	return map[schema.GroupResource]bool{pods: true}
}

// status is the exit status that an answer stands for.
func (a answer) status() int {
	switch a.Answer {
	case yes:
		return statusAllowed
	case no:
		return statusDenied
	}
	return statusUndecided
}

// styled colours an answer.
func (a answer) styled() string {
	switch a.Answer {
	case yes:
		return render.Good.In(a.Answer)
	case no:
		return render.Bad.In(a.Answer)
	}
	return render.Unsure.In(a.Answer)
}

// line is the answer in one line, with the reason.
func (a answer) line() string {
	line := a.styled()
	if a.Reason.Message != "" {
		line += ": " + a.Reason.Message
	}
	if len(a.Missing) > 0 {
		names := make([]string, len(a.Missing))
		for i, m := range a.Missing {
			names[i] = m.Resource
		}
		line += "; but could not read " + strings.Join(names, ", ")
	}
	return line
}

// warnMissing says on stderr what an answer lacks.
func (a *app) warnMissing(all []missing) {
	for _, m := range all {
		a.warn("%s", m)
	}
}
