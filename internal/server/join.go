package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/apiserver"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/join/clusterapi"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/join/machines"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// join lets machines join: the bootstrap service, the approver, or both, with the ledger that they
// share.
type join struct {
	config  *v1alpha1.ServerConfiguration
	version string
	logger  logr.Logger
	// observer counts and logs.
	observer joinObserver
	reach    *reach
	client   kubernetes.Interface
	ledger   *ledger.Client
	known    *ledger.Cache
	// machines is nil if neither the attestor nor the approver asks for registered machines.
	machines *machines.Registry
	// management is nil if Cluster API does not register machines.
	management *management
	// attestor, service and key are nil without bootstrap.
	attestor *pendingAttestor
	service  *bootstrap.Service
	key      *tokenKey
	// contained is nil if nothing is quarantined.
	contained *contained
	// approver is nil if this server does not approve.
	approver *controller.Controller
}

// newJoin returns the parts that the configuration enables; nil if there are none.
func newJoin(
	config *v1alpha1.ServerConfiguration, opts Options, cluster *rest.Config,
	metrics *observe.Metrics, refusals *observe.Refusals, shared *sharedEC2, contained *contained,
) (*join, error) {
	if config.Bootstrap.Address == "" && !config.Approver.Enabled {
		return nil, nil
	}
	j := &join{
		config: config, version: opts.Version, logger: opts.Logger,
		observer: joinObserver{metrics, refusals}, reach: &reach{}, contained: contained,
	}
	cluster = rest.CopyConfig(cluster)
	cluster.QPS = -1 // only the API server limits
	cluster.Wrap(j.reach.watch)
	var err error
	if j.client, err = kubernetes.NewForConfig(cluster); err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", cluster.Host, err)
	}
	if j.ledger, err = ledger.NewClient(cluster); err != nil {
		return nil, err
	}
	j.known = ledger.NewCache(j.ledger)
	j.known.LimitAge(config.Cluster.MaxStaleness.Duration, nil)
	if j.machines, err = newRegistry(j, cluster); err != nil {
		return nil, err
	}
	if config.Bootstrap.Address != "" {
		if j.attestor, err = newPendingAttestor(&config.Bootstrap, j.client, shared, j.machines); err != nil {
			return nil, err
		}
		if j.management, err = newManagement(j, opts, cluster, metrics); err != nil {
			return nil, err
		}
		j.service = newBootstrap(j)
		j.key = newTokenKey(j.service.ReadKey)
	}
	if config.Approver.Enabled {
		if j.approver, err = newApprover(j); err != nil {
			return nil, err
		}
		metrics.HasApprover()
	}
	metrics.WatchLedger(j.known.All)
	return j, nil
}

// addTo adds the bootstrap service to the parts that the listeners serve. The endpoint is
// nil if there is no bootstrap service.
func (j *join) addTo(p *parts, e *endpoint) {
	p.joinReady = []check{{"api-server", j.reach.state}, {"ledger-sync", j.ledgerSync}}
	if j.service != nil {
		p.machines = j.service.Handler(j.httpOptions(e.certificates))
		p.joinReady = append(p.joinReady, check{"attestor", j.attestor.state}, check{"token-key", j.key.state})
	}
	if j.machines != nil {
		p.joinReady = append(p.joinReady, check{"machines-sync", func() (string, error) { return "", j.machines.Fresh() }})
	}
	if j.management != nil {
		p.joinReady = append(p.joinReady, check{"cluster-api-sync", func() (string, error) { return "", j.management.Fresh() }})
	}
	if j.approver != nil {
		p.joinReady = append(p.joinReady, check{"approver", j.approving})
	}
}

// ledgerSync is a readiness check: the ledger has been read, and its copy is not too old.
func (j *join) ledgerSync() (string, error) { return "", j.known.Fresh() }

func (j *join) ages() []staleness.Aged {
	all := []staleness.Aged{j.known.Age()}
	if j.machines != nil {
		all = append(all, j.machines.Age())
	}
	if j.management != nil {
		all = append(all, j.management.Ages()...)
	}
	if j.approver != nil {
		all = append(all, j.approver.Ages()...)
	}
	return all
}

// follow keeps the ledger up to date, prepares the attestor and looks for other approvers, until the
// context ends.
func (j *join) follow(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	if j.attestor != nil {
		running.Go(func() {
			if j.attestor.follow(ctx, j.logger) {
				j.logger.Info("attesting machines", "attestor", j.attestor.kind)
			}
		})
		running.Go(func() { j.key.follow(ctx, j.logger) })
	}
	if j.machines != nil {
		running.Go(func() { j.machines.Run(ctx) })
	}
	if j.management != nil {
		running.Go(func() { j.management.follow(ctx) })
	}
	running.Go(func() { j.warnOfOtherApprovers(ctx) })
	if err := j.known.Run(ctx); err != nil {
		j.logger.Error(err, "the ledger cannot be followed")
	}
}

// warnOfInsecureSettings logs settings that trust machines more than their evidence.
func (j *join) warnOfInsecureSettings() {
	if j.config.Approver.Enabled {
		j.warnOfWeakSources()
	}
	b := &j.config.Bootstrap
	if b.Address == "" {
		return
	}
	if b.Attestor == v1alpha1.AlwaysAllowAttestor {
		j.logger.Info("WARNING: the attestor alwaysallow believes everything: whoever can connect gets a token for any node name "+
			"that is free; use it for development, or where the network itself authenticates machines",
			"clientCertificates", b.ClientCAFile != "")
	}
	if b.Attestor == v1alpha1.TPMAttestor && b.TPM.NodeName != "" {
		j.logger.Info("WARNING: machines need not be registered: whoever has a TPM of one of the vendors, and reaches this service, " +
			"joins; register machines, and remove bootstrap.tpm.nodeName")
	}
	if b.Attestor == v1alpha1.AWSAttestor && !b.AWS.VerifySignature {
		j.logger.Info("WARNING: signatures of identity documents are not verified: whoever can connect joins as any instance; " +
			"set bootstrap.aws.verifySignature to true")
	}
	if b.Attestor == v1alpha1.AWSAttestor && !b.AWS.VerifySourceAddress && !b.AWS.CallerIdentity.Required {
		j.logger.Info("WARNING: source addresses are not verified: whoever has seen a machine's identity document joins as that " +
			"machine, from anywhere, if faster; set bootstrap.aws.verifySourceAddress or bootstrap.aws.callerIdentity.required to true")
	}
}

// joinObserver counts and logs requests of machines.
type joinObserver struct {
	metrics *observe.Metrics
	log     *observe.Refusals
}

// Attested implements bootstrap.Observer.
func (o joinObserver) Attested(event bootstrap.Event) {
	o.metrics.Attested(&event)
	o.log.Attested(&event)
}

// Decided implements controller.Observer.
func (o joinObserver) Decided(event controller.Event) {
	o.metrics.Decided(&event)
	o.log.Decided(&event)
}

// Leading implements controller.Observer.
func (o joinObserver) Leading(leads bool) { o.metrics.Leading(leads) }

// TooOld implements controller.Observer.
func (o joinObserver) TooOld() { o.metrics.TooOld(observe.EndpointApprover) }

// newBootstrap returns the service that gives tokens to machines.
func newBootstrap(j *join) *bootstrap.Service {
	b := &j.config.Bootstrap
	return bootstrap.New(bootstrap.Options{
		Attestor: j.attestor, Ledger: j.ledger, Known: j.known, Client: j.client,
		TokenTTL:           b.Token.TTL.Duration,
		Reattestation:      bootstrap.Policy(b.Reattestation),
		VerifyRegistration: b.VerifyRegistration,
		Quarantines:        j.contained.quarantined(),
		Limits: bootstrap.Limits{
			PerSecond: float64(b.RateLimit.PerSecond), Burst: int(b.RateLimit.Burst),
			PerSourcePerSecond: float64(b.RateLimit.PerSource.PerSecond), PerSourceBurst: int(b.RateLimit.PerSource.Burst),
		},
		Timeout:  b.RequestTimeout.Duration,
		Observer: j.observer,
	})
}

func (j *join) httpOptions(certificates *certificates) bootstrap.HTTPOptions {
	b := &j.config.Bootstrap
	options := bootstrap.HTTPOptions{Version: j.version, MaxBodyBytes: b.MaxBodyBytes}
	if b.ClientCAFile != "" {
		options.Certificates = &machineCertificates{certificates, b.ClientCommonName}
	}
	if j.attestor.challenger != nil {
		options.Challenger = j.attestor.challenger
	}
	return options
}

// machineCertificates decides which machines may request tokens, by their client certificates.
type machineCertificates struct {
	certificates *certificates
	// name is the required common name.
	name string
}

// Check implements bootstrap.ClientCertificate.
func (m *machineCertificates) Check(r *http.Request) error {
	name, err := m.certificates.caller(r)
	switch invalid := new(invalidCertificateError); {
	case errors.As(err, &invalid):
		return attest.Refuse(bootstrap.ClientCertificateInvalid, "%v", invalid)
	case err != nil:
		return attest.Refuse(bootstrap.ClientCertificateRequired, "%v", err)
	case name != m.name:
		return attest.Refuse(bootstrap.ClientNameNotAllowed, "the client certificate is of %.253q, want %q", name, m.name)
	}
	return nil
}

// management has the Machines in the management cluster of Cluster API.
type management struct {
	*clusterapi.Registry
	// connection is nil if the Machines are in the cluster of the service.
	connection *apiserver.Connection
}

// newManagement lets the attestor ask for Machines of Cluster API; nil if these do not register machines.
func newManagement(j *join, opts Options, cluster *rest.Config, metrics certificateObserver) (*management, error) {
	c := &j.config.Bootstrap.ClusterAPI
	if !c.Enabled() {
		return nil, nil
	}
	m := &management{}
	if c.Kubeconfig != "" {
		var err error
		if m.connection, err = connectTo(managementKubeconfig, c.Kubeconfig, opts, metrics); err != nil {
			return nil, err
		}
		cluster = m.connection.Config()
		cluster.QPS = -1 // only the API server limits
	}
	client, err := dynamic.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("connect to management cluster %s: %w", cluster.Host, err)
	}
	m.Registry = clusterapi.New(clusterapi.Options{
		Client: client, Namespaces: c.Namespaces, ClusterName: c.ClusterName, MaxAge: j.config.Cluster.MaxStaleness.Duration,
	})
	j.attestor.registered = m.Registry
	return m, nil
}

// follow keeps the Machines up to date until the context ends.
func (m *management) follow(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	if m.connection != nil {
		running.Go(func() { m.connection.Run(ctx) })
	}
	m.Run(ctx)
}
