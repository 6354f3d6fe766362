package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"github.com/node-authorizer/node-authorizer/internal/approver"
)

// newApprover makes the controller that decides certificate requests.
func newApprover(j *join) (*approver.Controller, error) {
	a := &j.config.Approver
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this server in the election of the approver: %w", err)
	}
	return approver.New(approver.Options{
		Client: j.client, Ledger: j.ledger, Known: j.known,
		UnattestedNodes: string(a.UnattestedNodes), ServingAddresses: string(a.ServingAddresses),
		// Two servers on one host, or one after the other, are not the same.
		Identity:       host + "_" + rand.Text(),
		LeaseNamespace: a.LeaderElection.Namespace, LeaseName: a.LeaderElection.Name,
		LeaseDuration: a.LeaderElection.LeaseDuration.Duration,
		RenewDeadline: a.LeaderElection.RenewDeadline.Duration,
		RetryPeriod:   a.LeaderElection.RetryPeriod.Duration,
		MaxStaleness:  j.config.Cluster.MaxStaleness.Duration,
		Observer:      j.observer, Logger: j.logger,
	})
}

// approve takes part in the approver's election until the context ends, and then
// gives its lease to others.
func (j *join) approve(ctx context.Context) {
	if err := j.approver.Run(ctx); err != nil && ctx.Err() == nil {
		j.logger.Error(err, "the approver ended: nobody here decides certificate requests")
	}
}

var errApproverReads = errors.New("reading certificatesigningrequests and nodes: if this stays, let the server list and watch them")

// approving holds when the approver leads, or could, by what is not too old.
func (j *join) approving() (string, error) {
	if !j.approver.Synced() {
		return "", errApproverReads
	}
	return "", checkAges(j.approver.Ages())
}
