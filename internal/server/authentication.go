package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/instances"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/sts"
	"github.com/node-authorizer/node-authorizer/internal/aws/mappings"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
	"github.com/node-authorizer/node-authorizer/internal/server/webhook"
)

const authenticatePath = "/authenticate"

// authentication authenticates AWS IAM bearer tokens for API servers.
type authentication struct {
	config    *v1alpha1.ServerConfiguration
	logger    logr.Logger
	mappings  *mappings.Live
	instances *pendingInstances
	handler   http.Handler
}

// newAuthentication returns the authentication for a valid configuration. It answers with errors
// until follow has read the mappings. The cluster is nil if no mappings are in it.
func newAuthentication(
	config *v1alpha1.ServerConfiguration, opts Options, cluster *rest.Config,
	metrics *observe.Metrics, refusals *observe.Refusals, bodies *webhook.Queue, shared *sharedEC2, contained *contained,
) (*authentication, error) {
	c := &config.IAM
	r := &authentication{
		config: config, logger: opts.Logger,
		instances: newPendingInstances(c, shared, opts.aws, metrics.EC2Request),
	}
	verifier, err := newVerifier(c, opts.aws, metrics)
	if err != nil {
		return nil, err
	}
	if r.mappings, err = newMappings(config, opts.Logger, cluster); err != nil {
		return nil, err
	}
	authenticator := iam.NewAuthenticator(iam.Options{
		Verifier: verifier, Mappings: r.mappings, Instances: r.instances,
		Partition: c.Partition, SessionCheck: iam.SessionCheck(c.SessionCheck), SessionCheckExempt: c.SessionCheckExemptRoles,
		VPCs: c.EC2.VPCs, Quarantines: contained.quarantined(), Reserved: reserved(c),
	})
	options := webhookOptions(config, metrics, bodies, authenticatePath)
	options.Unasked = func(refusal *iam.Refusal) { metrics.Unasked(refusal); refusals.Unasked(refusal) }
	evaluate := refusals.Authenticate(metrics.Authenticate(authenticator.Authenticate))
	r.handler = webhook.Authenticate(evaluate, c.Audiences, options)
	metrics.WatchMappings(r.sources)
	return r, nil
}

// pendingInstances looks up instances when it is ready: the region may have to come from the metadata service of the
// server's own instance. Until then look-ups return an error, so that no caller is authenticated as a node or refused.
type pendingInstances struct{ pending[iam.Instances] }

// newPendingInstances returns look-ups that send requests to IAM through a transport; nil for the default of the SDK.
func newPendingInstances(
	c *v1alpha1.IAM, shared *sharedEC2, transport http.RoundTripper, observe func(service, outcome string),
) *pendingInstances {
	l := &pendingInstances{}
	l.name = "the look-up of instances"
	l.make = limited(func(ctx context.Context) (iam.Instances, error) {
		askIAM, region, err := instances.NewIAM(ctx, c.Region, transport)
		if err != nil {
			return nil, err
		}
		client, err := shared.get(ctx)
		if err != nil {
			return nil, err
		}
		return instances.New(instances.Options{
			EC2: client, Region: region, IAM: askIAM, TTL: c.EC2.CacheTTL.Duration, Size: int(c.EC2.CacheSize),
			PerSecond: float64(c.EC2.PerSecond), Burst: int(c.EC2.Burst),
			Observe: func(outcome string) { observe("IAM", outcome) },
		}), nil
	})
	return l
}

// Instance implements iam.Instances.
func (l *pendingInstances) Instance(ctx context.Context, id string, withRoles bool) (*iam.Instance, error) {
	made, err := l.get()
	if err != nil {
		return nil, err
	}
	return made.Instance(ctx, id, withRoles)
}

// state is a readiness check: instances can be looked up.
func (l *pendingInstances) state() (note string, err error) {
	_, err = l.get()
	return "", err
}

// newVerifier returns a verifier that sends requests to STS.
func newVerifier(c *v1alpha1.IAM, transport http.RoundTripper, metrics *observe.Metrics) (*sts.Verifier, error) {
	hosts, err := sts.NewHosts(context.Background(), c.Partition, c.STS.ExtraHosts)
	if err != nil {
		return nil, fmt.Errorf("iam.sts: %w", err)
	}
	verifier, err := sts.New(sts.Options{
		ClusterID: c.ClusterID, Hosts: hosts, Transport: transport,
		Timeout: c.STS.Timeout.Duration, MaxInFlight: int(c.STS.MaxInFlight),
		PerSecond: float64(c.STS.PerSecond), Burst: int(c.STS.Burst),
		CacheTTL: c.STS.CacheTTL.Duration, CacheSize: int(c.STS.CacheSize), Observe: stsObserver{metrics},
	})
	if err != nil {
		return nil, fmt.Errorf("iam: %w", err)
	}
	return verifier, nil
}

func newMappings(config *v1alpha1.ServerConfiguration, logger logr.Logger, cluster *rest.Config) (*mappings.Live, error) {
	c := &config.IAM
	if cluster != nil {
		cluster = rest.CopyConfig(cluster)
		cluster.QPS = -1 // only the API server limits
	}
	live, err := mappings.New(mappings.Options{
		Sources: c.Sources, File: c.File, Namespace: c.ConfigMap.Namespace, Name: c.ConfigMap.Name,
		Cluster:  cluster,
		Rules:    iam.Rules{Partition: c.Partition, RolePaths: iam.PathPolicy(c.RolePaths), Reserved: reserved(c)},
		Observer: mappingLog{logger}, MaxStaleness: config.Cluster.MaxStaleness.Duration,
	})
	if err != nil {
		return nil, fmt.Errorf("iam.sources: %w", err)
	}
	return live, nil
}

func reserved(c *v1alpha1.IAM) iam.Reserved {
	r := &c.Reserved
	return iam.Reserved{Prefixes: r.Prefixes, GrantedUsernames: r.GrantedUsernames, GrantedGroups: r.GrantedGroups}
}

// mappingsInCluster reports whether a source of mappings is in the cluster.
func mappingsInCluster(c *v1alpha1.IAM) bool {
	return slices.Contains(c.Sources, v1alpha1.ConfigMapSource) || slices.Contains(c.Sources, v1alpha1.IdentityMappingSource)
}

// addTo adds the webhook to the parts that the listeners serve.
func (r *authentication) addTo(p *parts) {
	p.webhooks[authenticatePath] = r.handler
	p.ready = append(p.ready, check{"mappings", r.mappingsRead}, check{"ec2", r.instances.state})
}

// follow keeps the mappings up to date, and prepares the look-up of instances, until the context
// ends.
func (r *authentication) follow(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { r.instances.follow(ctx, r.logger) })
	r.mappings.Run(ctx)
}

// mappingsRead is a readiness check: every source has been read, and no copy is too old. Its note
// names the sources that cannot be read now.
func (r *authentication) mappingsRead() (note string, err error) {
	if err := r.mappings.Synced(); err != nil {
		return "", err
	}
	if err := r.mappings.TooOld(); err != nil {
		return "", err
	}
	var stale []error
	for _, s := range r.mappings.Sources() {
		if s.Err != nil {
			stale = append(stale, fmt.Errorf("%s cannot be followed: %w", s.Name, s.Err))
		}
		for _, key := range s.Stale {
			stale = append(stale, fmt.Errorf("%s: %s cannot be read, its last good state is in use", s.Name, key))
		}
	}
	if err := errors.Join(stale...); err != nil {
		note = err.Error()
	}
	return note, nil
}

// sources returns the states of the sources of mappings, for metrics.
func (r *authentication) sources() []observe.MappingSource {
	var all []observe.MappingSource
	for _, s := range r.mappings.Sources() {
		all = append(all, observe.MappingSource{
			Name: string(s.Kind), Healthy: s.Healthy(), Mappings: s.Mappings, Findings: s.Findings,
		})
	}
	return all
}

// warnOfInsecureSettings logs settings that trust callers more than AWS does.
func (r *authentication) warnOfInsecureSettings() {
	c := &r.config.IAM
	if r.config.Webhook.ClientAuthentication == v1alpha1.NoClientAuthentication {
		r.logger.Info("WARNING: callers are not authenticated: everybody who can connect can have tokens verified, " +
			"and learn their users; set webhook.clientAuthentication to Required")
	}
	switch c.SessionCheck {
	case v1alpha1.InstanceProfileCheck:
	case v1alpha1.InstanceCheck:
		r.logger.Info("WARNING: the roles of instances are not compared with the roles of sessions: a principal that may assume a role " +
			"that is mapped to nodes can be any node; with iam.sessionCheck: InstanceProfile, only one whose instance has that role")
	case v1alpha1.NoSessionCheck:
		r.logger.Info("WARNING: sessions are not checked: whoever may assume a role that is mapped to nodes can be any node, " +
			"even one that does not exist; with iam.sessionCheck: InstanceProfile, only one whose instance has that role")
	}
	if len(c.SessionCheckExemptRoles) > 0 && c.SessionCheck != v1alpha1.NoSessionCheck {
		r.logger.Info("sessions of some roles are not checked: whoever may assume one of them can be any node that its mapping "+
			"makes of a session's name; limit iam.sessionCheckExemptRoles to roles whose sessions are not instances",
			"roles", c.SessionCheckExemptRoles)
	}
	if len(c.Reserved.Prefixes) == 0 {
		r.logger.Info("WARNING: no names are reserved: whoever edits mappings can give any username and group of Kubernetes; " +
			"set iam.reserved.prefixes")
	}
}
