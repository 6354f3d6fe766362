package contain

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/generate"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// quarantineClient reads and writes Quarantines, and what commands about them need to know of the
// cluster.
type quarantineClient struct {
	*gentype.ClientWithList[*policyv1alpha1.Quarantine, *policyv1alpha1.QuarantineList]
	cluster kubernetes.Interface
	host    string
}

func newQuarantineClient(to *command.Connection) (*quarantineClient, error) {
	config, err := to.Config()
	if err != nil {
		return nil, err
	}
	cluster, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", config.Host, err)
	}
	client, codec, err := generate.Client(config)
	if err != nil {
		return nil, err
	}
	return &quarantineClient{gentype.NewClientWithList(
		policyv1alpha1.QuarantineResource, client, codec, "",
		func() *policyv1alpha1.Quarantine { return &policyv1alpha1.Quarantine{} },
		func() *policyv1alpha1.QuarantineList { return &policyv1alpha1.QuarantineList{} },
	), cluster, config.Host}, nil
}

func (c *quarantineClient) all(ctx context.Context) ([]policyv1alpha1.Quarantine, error) {
	list, err := c.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf(
			"the cluster does not know quarantines: install the CustomResourceDefinition, or check which cluster you asked: %w", err,
		)
	}
	if err != nil {
		return nil, command.ExplainRequest(ctx, c.host, "list quarantines", err)
	}
	return list.Items, nil
}

// quarantinePoll is the time between two looks at whether a Quarantine takes effect.
const quarantinePoll = 200 * time.Millisecond

// effect is yes, no or unknown, and why.
type effect struct {
	// Answer is yes, no, or unknown.
	Answer string `json:"answer"`
	// Detail says why.
	Detail string `json:"detail"`
}

// await waits until the servers have said whether they accept a Quarantine, and until the API server
// refuses what it is about.
func (c *quarantineClient) await(ctx context.Context, result *QuarantineResult, object *policyv1alpha1.Quarantine, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	accepted, refused := effect{}, effect{}
	until(ctx, func(ctx context.Context) bool {
		accepted = c.accepted(ctx, object)
		return accepted.Answer != command.Unknown
	})
	if accepted.Answer != command.No {
		until(ctx, func(ctx context.Context) bool {
			refused = c.refused(ctx, object)
			return refused.Answer == command.Yes
		})
	} else {
		refused = effect{command.Unknown, "it was not asked, because the servers do not accept the Quarantine"}
	}
	result.Accepted, result.Refused = &accepted, &refused
}

// until calls a function until it is done or the context ends, and at least once.
func until(ctx context.Context, done func(context.Context) bool) {
	const one = 5 * time.Second // for a request that begins when the time has passed
	_ = wait.PollUntilContextCancel(ctx, quarantinePoll, true, func(context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), one)
		defer cancel()
		return done(ctx), nil
	})
}

// accepted reads what the servers say about the current generation of a Quarantine.
func (c *quarantineClient) accepted(ctx context.Context, object *policyv1alpha1.Quarantine) effect {
	latest, err := c.Get(ctx, object.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return effect{command.No, "it was deleted"}
	case err != nil:
		return effect{command.Unknown, "it could not be read: " + command.OneLine(err).Error()}
	case latest.UID != object.UID:
		return effect{command.No, "it was replaced"}
	}
	return acceptance(latest, time.Now())
}

// acceptance is what the status of a Quarantine says about its current generation.
func acceptance(q *policyv1alpha1.Quarantine, now time.Time) effect {
	condition := meta.FindStatusCondition(q.Status.Conditions, policyv1alpha1.ConditionAccepted)
	end := q.Spec.ExpirationTime
	switch {
	case end != nil && !now.Before(end.Time):
		return effect{command.No, "it has ended"}
	case condition == nil, q.Status.ObservedGeneration < q.Generation, condition.Status == metav1.ConditionUnknown:
		return effect{command.Unknown, "no server has said so: nothing follows quarantines (containment.quarantines: Enabled), or its " +
			"status cannot be written"}
	case condition.Status == metav1.ConditionTrue:
		return effect{command.Yes, "the servers refuse what it names"}
	}
	return effect{command.No, condition.Reason + ": " + condition.Message}
}

// quarantineProbe is a question about the credentials that a Quarantine cuts off.
type quarantineProbe struct {
	// of says whose requests the question stands for.
	of   string
	code verdict.Code
	spec authorizationv1.SubjectAccessReviewSpec
}

// probeName is the name of a node, and of a service account, that does not exist.
const probeName = "node-authorizer-probe"

// probesOf returns questions that the Quarantine refuses with any words of --allow.
func probesOf(object *policyv1alpha1.Quarantine) []quarantineProbe {
	attributes := &authorizationv1.ResourceAttributes{Version: "v1", Resource: "services", Verb: "list"}
	ask := func(user string, groups []string, key, value string) authorizationv1.SubjectAccessReviewSpec {
		spec := authorizationv1.SubjectAccessReviewSpec{
			User: user, Groups: append(groups, "system:authenticated"), ResourceAttributes: attributes,
		}
		if key != "" {
			spec.Extra = map[string]authorizationv1.ExtraValue{key: {value}}
		}
		return spec
	}
	node, credential := object.Spec.Node, object.Spec.Credential
	if node == "" {
		user, groups := nodeidentity.User(probeName)
		return []quarantineProbe{{
			"a node with the credential", quarantine.CredentialQuarantined,
			ask(user, groups, nodeidentity.ExtraCredential, credential),
		}}
	}
	user, groups := nodeidentity.User(node)
	account := nodeidentity.ServiceAccountUser(metav1.NamespaceSystem, probeName)
	return []quarantineProbe{
		{"the node", quarantine.NodeQuarantined, ask(user, groups, "", "")},
		{
			"service accounts on it", quarantine.NodeQuarantined,
			ask(account, []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}, nodeidentity.ExtraNode, node),
		},
	}
}

// refused asks the API server whether it refuses what a Quarantine is about.
func (c *quarantineClient) refused(ctx context.Context, object *policyv1alpha1.Quarantine) effect {
	var refused []string
	inDoubt := effect{}
	for _, p := range probesOf(object) {
		switch answer := c.ask(ctx, p); answer.Answer {
		case command.Yes:
			refused = append(refused, p.of)
		case command.No:
			return answer
		default:
			inDoubt = answer
		}
	}
	if inDoubt.Answer != "" {
		return inDoubt
	}
	return effect{command.Yes, strings.Join(refused, ", and ")}
}

// ask asks one question. A denial with the sentence of the code is the Quarantine's.
func (c *quarantineClient) ask(ctx context.Context, p quarantineProbe) effect {
	review, err := c.cluster.AuthorizationV1().SubjectAccessReviews().Create(
		ctx, &authorizationv1.SubjectAccessReview{Spec: p.spec}, metav1.CreateOptions{},
	)
	if err != nil {
		return effect{command.Unknown, "it could not be asked: " + command.OneLine(err).Error()}
	}
	switch status := &review.Status; {
	case status.Denied && strings.Contains(status.Reason, quarantine.Summary(p.code)):
		return effect{command.Yes, p.of}
	case status.Denied:
		why := status.Reason + status.EvaluationError
		return effect{command.Unknown, fmt.Sprintf("it denies requests of %s for another reason: %q", p.of, why)}
	}
	return effect{command.No, "it does not deny requests of " + p.of + ": it does not ask node-authorizer first, or uses an earlier " +
		"answer; in the AuthorizationConfiguration of every API server, the webhook has to come before Node and RBAC, and its match " +
		"conditions let these requests pass"}
}
