package localplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/test/localplane/internal/pki"
	"github.com/node-authorizer/node-authorizer/test/localplane/internal/process"
)

// componentPorts are the ports of 127.0.0.1 on which the components listen.
type componentPorts struct {
	etcdClients, etcdPeers, apiServer, controllerManager, scheduler int
}

func (p *Plane) takePorts() error {
	for _, port := range []*int{
		&p.ports.etcdClients, &p.ports.etcdPeers, &p.ports.apiServer, &p.ports.controllerManager, &p.ports.scheduler,
	} {
		taken, err := p.reserved.Take()
		if err != nil {
			return err
		}
		*port = taken
	}
	p.server = loopback(p.ports.apiServer)
	return nil
}

func loopback(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }

// etcdArgs disables fsync: the data need not survive a crash of the machine.
func (p *Plane) etcdArgs() []string {
	c, clients, peers := p.certificates, loopback(p.ports.etcdClients), loopback(p.ports.etcdPeers)
	return []string{
		"--name=localplane",
		"--data-dir=" + p.layout.etcdData(),
		"--listen-client-urls=" + clients,
		"--advertise-client-urls=" + clients,
		"--listen-peer-urls=" + peers,
		"--initial-advertise-peer-urls=" + peers,
		"--initial-cluster=localplane=" + peers,
		"--client-cert-auth",
		"--trusted-ca-file=" + c.etcdCA.CertFile,
		"--cert-file=" + c.etcdServer.CertFile,
		"--key-file=" + c.etcdServer.KeyFile,
		"--peer-client-cert-auth",
		"--peer-trusted-ca-file=" + c.etcdCA.CertFile,
		"--peer-cert-file=" + c.etcdServer.CertFile,
		"--peer-key-file=" + c.etcdServer.KeyFile,
		"--unsafe-no-fsync",
	}
}

func (p *Plane) apiServerArgs() []string {
	c := p.certificates
	args := []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.ports.apiServer),
		"--advertise-address=127.0.0.1",
		// A loopback address is not a valid endpoint of the kubernetes service.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceRange,
		"--tls-cert-file=" + c.apiServer.CertFile,
		"--tls-private-key-file=" + c.apiServer.KeyFile,
		"--client-ca-file=" + c.ca.CertFile,
		"--etcd-servers=" + loopback(p.ports.etcdClients),
		"--etcd-cafile=" + c.etcdCA.CertFile,
		"--etcd-certfile=" + c.etcdClient.CertFile,
		"--etcd-keyfile=" + c.etcdClient.KeyFile,
		"--kubelet-client-certificate=" + c.kubelets.CertFile,
		"--kubelet-client-key=" + c.kubelets.KeyFile,
		"--proxy-client-cert-file=" + c.frontProxy.CertFile,
		"--proxy-client-key-file=" + c.frontProxy.KeyFile,
		"--requestheader-client-ca-file=" + c.frontProxyCA.CertFile,
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.signingPublicKey,
		"--service-account-signing-key-file=" + c.signingKey,
		"--enable-bootstrap-token-auth",
		"--allow-privileged",
	}
	if p.options.VerifyKubelets {
		args = append(args, "--kubelet-certificate-authority="+c.ca.CertFile, "--kubelet-preferred-address-types=InternalIP")
	}
	return append(args, p.options.authorizationArgs()...)
}

func (p *Plane) controllerManagerArgs(kubeconfig string) []string {
	c := p.certificates
	return append(p.clientArgs(kubeconfig, p.ports.controllerManager),
		"--use-service-account-credentials",
		// With credentials for each controller, the default rate limit delays the start
		// by seconds.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--root-ca-file="+c.ca.CertFile,
		"--service-account-private-key-file="+c.signingKey,
		"--cluster-signing-cert-file="+c.ca.CertFile,
		"--cluster-signing-key-file="+c.ca.KeyFile,
	)
}

// clientArgs are the common arguments of clients of kube-apiserver. Each runs once, so
// leader election is disabled.
func (p *Plane) clientArgs(kubeconfig string, port int) []string {
	c := p.certificates
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + c.healthzOnly.CertFile,
		"--tls-private-key-file=" + c.healthzOnly.KeyFile,
		"--client-ca-file=" + c.ca.CertFile,
	}
}

// makeUnits writes the kubeconfigs and prepares all components.
func (p *Plane) makeUnits() error {
	c := p.certificates
	if _, err := p.writeKubeconfig("admin", withCertificate(c.admin)); err != nil {
		return err
	}
	managerConfig, err := p.writeKubeconfig("kube-controller-manager", withCertificate(c.controllerManager))
	if err != nil {
		return err
	}
	schedulerConfig, err := p.writeKubeconfig("kube-scheduler", withCertificate(c.scheduler))
	if err != nil {
		return err
	}
	etcdClient, err := probeClient(&c.etcdCA.Pair, c.etcdClient)
	if err != nil {
		return err
	}
	client, err := probeClient(&c.ca.Pair, c.admin)
	if err != nil {
		return err
	}
	p.components = map[Component]*unit{
		Etcd:      p.component(Etcd, p.etcdArgs(), etcdClient, loopback(p.ports.etcdClients)+"/readyz"),
		APIServer: p.component(APIServer, p.apiServerArgs(), client, p.server+"/readyz"),
		ControllerManager: p.component(ControllerManager, p.controllerManagerArgs(managerConfig), client,
			loopback(p.ports.controllerManager)+"/healthz"),
		Scheduler: p.component(Scheduler, p.clientArgs(schedulerConfig, p.ports.scheduler), client,
			loopback(p.ports.scheduler)+"/readyz"),
	}
	if p.options.WithoutControllers {
		delete(p.components, ControllerManager)
		delete(p.components, Scheduler)
	}
	return nil
}

// componentArgs appends the arguments in the options for all components, and for this
// one.
func (p *Plane) componentArgs(c Component, args []string) []string {
	if c != Etcd {
		args = append(args, p.options.featureGateArgs()...)
	}
	return append(args, p.options.ExtraArgs[c]...)
}

func (p *Plane) component(c Component, args []string, client *http.Client, readyURL string) *unit {
	return &unit{
		group: p.group,
		spec: process.Spec{
			Name: string(c),
			Path: p.binaries.Path(string(c)),
			Args: p.componentArgs(c, args),
			Log:  p.layout.log(string(c)),
		},
		progress: p.options.Progress,
		ready:    func(ctx context.Context) error { return probe(ctx, client, readyURL) },
		changed:  p.writeState,
	}
}

// probeClient returns a client without keep-alive: each answer is from the process that
// listens now.
func probeClient(ca, client *pki.Pair) (*http.Client, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Cert)
	certificate, err := tls.X509KeyPair(client.Cert, client.Key)
	if err != nil {
		return nil, fmt.Errorf("make a client for health checks: %w", err)
	}
	return &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}},
			DisableKeepAlives: true,
		},
	}, nil
}

func probe(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", url, response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}
