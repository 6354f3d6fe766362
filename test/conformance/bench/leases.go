package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/test/e2e/webhookcluster"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

const leasesMethod = `Two control planes, each with one hollow node: one with the in-tree Node authorizer and
NodeRestriction, one whose kube-apiserver asks ` + "`node-authorizer server`" + ` for both, set up from
the files in ` + "`deploy/static-pod`" + `. The node's own credential renews its lease, one renewal after
the other, on both alternately. A renewal costs two calls, to ` + "`/authorize`" + ` and to
` + "`/admit`" + `; the API server keeps no answers. Processor time is for kube-apiserver, and for the
server where there is one. Each kubelet renews its lease every 10 seconds.`

// renewer renews one node's lease on one plane.
type renewer struct {
	client kubernetes.Interface
	lease  *coordinationv1.Lease
	pids   []int // of the processes that have work with it
}

// leases measures the cost of renewing a lease through the webhooks.
func (b *bench) leases() (s section, err error) {
	s = section{title: "Lease renewals", method: leasesMethod}
	b.log("leases: starting two control planes")
	plain, err := localplane.Start(b.ctx, localplane.Options{Progress: b.status})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, plain.Stop()) }()
	asking, err := webhookcluster.Start(b.ctx, webhookcluster.Options{Root: b.root, Replicas: 1, Progress: b.status})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, asking.Stop()) }()
	var renewers pair[*renewer]
	if renewers[inTree], err = newRenewer(b.ctx, plain); err != nil {
		return s, err
	}
	if renewers[ours], err = newRenewer(b.ctx, asking.Plane); err != nil {
		return s, err
	}
	server, err := processOf(asking.Replicas[0].ConfigArgument())
	if err != nil {
		return s, err
	}
	renewers[ours].pids = append(renewers[ours].pids, server)
	return s, b.renew(&s, renewers)
}

// newRenewer adds a node to a plane and takes its credential.
func newRenewer(ctx context.Context, plane *localplane.Plane) (*renewer, error) {
	node, err := plane.AddNode(ctx, "worker-1", localplane.NodeOptions{})
	if err != nil {
		return nil, err
	}
	config, err := node.Config()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	r := &renewer{}
	if r.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if err := r.awaitLease(ctx); err != nil {
		return nil, err
	}
	// From here on, the kubelet's own renewals would be in the way.
	if err := node.Stop(); err != nil {
		return nil, err
	}
	if err := r.awaitLease(ctx); err != nil {
		return nil, err
	}
	apiServer, err := apiServerOf(plane)
	if err != nil {
		return nil, err
	}
	r.pids = []int{apiServer.pid}
	return r, nil
}

// awaitLease reads the lease, which a kubelet makes soon after its Node object.
func (r *renewer) awaitLease(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		lease, err := r.client.CoordinationV1().Leases("kube-node-lease").Get(ctx, "worker-1", metav1.GetOptions{})
		r.lease = lease
		return err == nil, ignoreNotFound(err)
	})
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// renewals has the times of a round of renewals.
type renewals struct {
	half, slow time.Duration
	// busy is the processor time of one renewal.
	busy time.Duration
}

func (r *renewer) round(ctx context.Context, n int) (renewals, error) {
	before := r.busy()
	took := make([]time.Duration, n)
	for i := range took {
		now := metav1.NowMicro()
		r.lease.Spec.RenewTime = &now
		var err error
		if r.lease, err = r.client.CoordinationV1().Leases(r.lease.Namespace).Update(ctx, r.lease, metav1.UpdateOptions{}); err != nil {
			return renewals{}, fmt.Errorf("renewing a lease: %w", err)
		}
		took[i] = time.Since(now.Time)
	}
	slices.Sort(took)
	return renewals{half: took[n/2], slow: took[n*99/100], busy: (r.busy() - before) / time.Duration(n)}, nil
}

func (r *renewer) busy() time.Duration {
	var total time.Duration
	for _, pid := range r.pids {
		total += processTimeOf(pid)
	}
	return total
}

func (b *bench) renew(s *section, renewers pair[*renewer]) error {
	var all pair[[]renewals]
	for i := range b.rounds + 1 {
		b.log("leases: round %d of %d", i, b.rounds)
		for j := range sides {
			side := sides[(i+j)%len(sides)]
			round, err := renewers[side].round(b.ctx, b.renewals)
			if err != nil {
				return err
			}
			if i > 0 { // the first round warms up
				all[side] = append(all[side], round)
			}
		}
	}
	t := table{caption: "**One renewal.**", header: []string{"", "median", "99th percentile", "processor time"}}
	for _, row := range []struct {
		name string
		side side
	}{{"in-tree", inTree}, {"webhooks", ours}} {
		t.add(row.name,
			nanoseconds(medianOf(all[row.side], func(r renewals) time.Duration { return r.half })),
			nanoseconds(medianOf(all[row.side], func(r renewals) time.Duration { return r.slow })),
			nanoseconds(medianOf(all[row.side], func(r renewals) time.Duration { return r.busy })))
	}
	more := medianOf(all[ours], busyTime) - medianOf(all[inTree], busyTime)
	s.tables = append(s.tables, t)
	s.remarks = append(s.remarks, fmt.Sprintf("The webhooks cost %s of processor time more for a renewal: for 5,000 "+
		"nodes, which renew 500 leases a second, %s of one core.",
		nanoseconds(more), percent(more*500/1e9)))
	return nil
}

func busyTime(r renewals) time.Duration { return r.busy }

func medianOf(all []renewals, figure func(renewals) time.Duration) float64 {
	var figures []float64
	for _, r := range all {
		figures = append(figures, float64(figure(r).Nanoseconds()))
	}
	return median(figures)
}
