package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"github.com/node-authorizer/node-authorizer/internal/join/controller"
)

// newApprover returns the controller that decides certificate requests.
func newApprover(j *join) (*controller.Controller, error) {
	a := &j.config.Approver
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this server in the election of the approver: %w", err)
	}
	return controller.New(controller.Options{
		Client: j.client, Ledger: j.ledger, Known: j.known,
		Quarantines:     j.contained.quarantined(),
		UnattestedNodes: string(a.UnattestedNodes), ServingAddresses: string(a.ServingAddresses),
		// Servers on one host, concurrent or in succession, have different identities.
		Identity:       host + "_" + rand.Text(),
		LeaseNamespace: a.LeaderElection.Namespace, LeaseName: a.LeaderElection.Name,
		LeaseDuration: a.LeaderElection.LeaseDuration.Duration,
		RenewDeadline: a.LeaderElection.RenewDeadline.Duration,
		RetryPeriod:   a.LeaderElection.RetryPeriod.Duration,
		MaxStaleness:  j.config.Cluster.MaxStaleness.Duration,
		Observer:      j.observer, Logger: j.logger,
	})
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
