package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/nametemplate"
)

// newApprover returns the controller that decides certificate requests.
func newApprover(j *join) (*controller.Controller, error) {
	a := &j.config.Approver
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this server in the election of the approver: %w", err)
	}
	sources, err := servingSources(a.ServingCertificates)
	if err != nil {
		return nil, err
	}
	return controller.New(controller.Options{
		Client: j.client, Ledger: j.ledger, Known: j.known,
		Quarantines:     j.contained.quarantined(),
		UnattestedNodes: string(a.UnattestedNodes), ServingAddresses: string(a.ServingAddresses), ServingSources: sources,
		Machines: j.machines.Approved,
		// Servers on one host, concurrent or in succession, have different identities.
		Identity:       host + "_" + rand.Text(),
		LeaderElection: a.LeaderElection,
		MaxStaleness:   j.config.Cluster.MaxStaleness.Duration,
		Observer:       j.observer, Logger: j.logger,
	})
}

// servingSources reads the sources that vouch for serving certificates.
func servingSources(configured []v1alpha1.ServingSource) ([]approve.Source, error) {
	sources := make([]approve.Source, len(configured))
	for i := range configured {
		from, to := &configured[i], &sources[i]
		to.NodeAddresses, to.Machine, to.DNS = from.NodeAddresses, from.Machine, from.DNS
		for _, text := range from.Names {
			template, err := nametemplate.Parse(text, nametemplate.NodeName)
			if err != nil {
				return nil, fmt.Errorf("approver.servingCertificates[%d].names: %w", i, err)
			}
			to.Names = append(to.Names, template)
		}
		for _, text := range from.Networks {
			network, err := netip.ParsePrefix(text)
			if err != nil {
				return nil, fmt.Errorf("approver.servingCertificates[%d].networks: %w", i, err)
			}
			to.Networks = append(to.Networks, network)
		}
	}
	return sources, nil
}

// warnOfWeakSources logs sources that let a node choose addresses of others.
func (j *join) warnOfWeakSources() {
	for i, s := range j.config.Approver.ServingCertificates {
		source := fmt.Sprintf("approver.servingCertificates[%d]", i)
		switch {
		case s.DNS, s.Machine:
		case s.NodeAddresses:
			j.logger.Info("WARNING: a source of serving certificates believes the status of Nodes, which kubelets write unless a cloud "+
				"provider does: whoever has a node's credential gets certificates for addresses that no other Node has; "+
				"set machine, dns or networks too", "source", source)
		case len(s.Networks) > 0:
			j.logger.Info("WARNING: a source of serving certificates does not bind addresses to nodes: whoever has a node's credential "+
				"gets certificates for all addresses of its networks that no other Node has; set machine, dns or nodeAddresses too",
				"source", source)
		}
	}
}

// approve takes part in the approver's election until the context ends, and then releases the
// lease.
func (j *join) approve(ctx context.Context) {
	if err := j.approver.Run(ctx); err != nil && ctx.Err() == nil {
		j.logger.Error(err, "the approver ended: this server does not decide certificate requests")
	}
}

var errApproverReads = errors.New("reading certificatesigningrequests and nodes: if this stays, let the server list and watch them")

// approving is a readiness check: the approver leads, or could lead, with copies that are current.
func (j *join) approving() (string, error) {
	if !j.approver.Synced() {
		return "", errApproverReads
	}
	return "", checkAges(j.approver.Ages())
}

// otherApproval is a right that makes kube-controller-manager approve requests, independently of the
// approver.
type otherApproval struct {
	user, subresource string
	groups            []string
	danger            string
}

// otherApprovals returns the rights to check. A bootstrap token has the groups that the API server
// gives to every token, and the group of this service.
func otherApprovals() []otherApproval {
	return []otherApproval{
		{
			user: "system:bootstrap:000000", groups: []string{"system:bootstrappers", ledger.TokenGroup, "system:authenticated"},
			subresource: "nodeclient",
			danger:      "a token is then good for any node's name, and for more than one certificate",
		},
		{
			user: "system:node:any", groups: []string{"system:nodes", "system:authenticated"},
			subresource: "selfnodeclient",
			danger:      "certificates are then renewed after a revocation",
		},
	}
}

// warnOfOtherApprovers asks the API server whether kube-controller-manager would approve requests that
// the approver should decide, and logs it.
func (j *join) warnOfOtherApprovers(ctx context.Context) {
	backoff := connectBackoff()
	for _, other := range otherApprovals() {
		for {
			allowed, err := j.mayBeApproved(ctx, other)
			if err == nil {
				if allowed {
					j.logger.Info("WARNING: kube-controller-manager approves certificate requests of these groups by itself: "+
						other.danger+"; remove the ClusterRoleBinding that lets them create certificatesigningrequests/"+
						other.subresource, "groups", other.groups)
				}
				break
			}
			if apierrors.IsForbidden(err) && j.approver == nil {
				// A server without an approver need not have the right to ask.
				j.logger.V(1).Info("not asked whether kube-controller-manager approves certificate requests of machines",
					"cause", err.Error())
				return
			}
			select {
			case <-time.After(backoff.Step()):
			case <-ctx.Done():
				return
			}
		}
	}
}

func (j *join) mayBeApproved(ctx context.Context, other otherApproval) (bool, error) {
	review, err := j.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: other.user, Groups: other.groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: certificatesv1.GroupName, Version: "*", Verb: "create",
				Resource: "certificatesigningrequests", Subresource: other.subresource,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask whether %s may create certificatesigningrequests/%s: %w", other.user, other.subresource, err)
	}
	return review.Status.Allowed, nil
}
