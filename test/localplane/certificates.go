package localplane

import (
	"path/filepath"

	"github.com/node-authorizer/node-authorizer/test/localplane/internal/pki"
)

// certificates are the certificates of one plane. As in a real cluster, there are three
// authorities: one for users and servers of Kubernetes, one for the front proxy of
// aggregated API servers, and one for etcd.
type certificates struct {
	ca, frontProxyCA, etcdCA *pki.Authority

	admin, controllerManager, scheduler *pki.Pair
	// kubelets is the client certificate of kube-apiserver for kubelets.
	kubelets    *pki.Pair
	frontProxy  *pki.Pair
	etcdClient  *pki.Pair
	etcdServer  *pki.Pair
	apiServer   *pki.Pair
	healthzOnly *pki.Pair

	signingKey, signingPublicKey string
}

// serviceRange is the range of service addresses. kubernetesService is the first of them,
// the address of the kubernetes service.
const (
	serviceRange      = "10.96.0.0/16"
	kubernetesService = "10.96.0.1"
)

func newCertificates(l layout) (*certificates, error) {
	c := &certificates{
		signingKey:       filepath.Join(l.pki(), "service-account.key"),
		signingPublicKey: filepath.Join(l.pki(), "service-account.pub"),
	}
	if err := pki.WriteSigningKey(c.signingKey, c.signingPublicKey); err != nil {
		return nil, err
	}
	for _, authority := range []struct {
		out       **pki.Authority
		dir, name string
	}{
		{&c.ca, l.pki(), "ca"},
		{&c.frontProxyCA, l.frontProxyPKI(), "front-proxy-ca"},
		{&c.etcdCA, l.etcdPKI(), "etcd-ca"},
	} {
		made, err := pki.NewAuthority(authority.dir, authority.name)
		if err != nil {
			return nil, err
		}
		*authority.out = made
	}
	for _, client := range []struct {
		out        **pki.Pair
		by         *pki.Authority
		name, user string
		groups     []string
	}{
		{&c.admin, c.ca, "admin", "admin", []string{"system:masters"}},
		{&c.controllerManager, c.ca, "kube-controller-manager", "system:kube-controller-manager", nil},
		{&c.scheduler, c.ca, "kube-scheduler", "system:kube-scheduler", nil},
		{&c.kubelets, c.ca, "kube-apiserver-kubelet-client", "kube-apiserver-kubelet-client", []string{"system:masters"}},
		{&c.frontProxy, c.frontProxyCA, "front-proxy-client", "front-proxy-client", nil},
		{&c.etcdClient, c.etcdCA, "kube-apiserver-etcd-client", "kube-apiserver", nil},
	} {
		made, err := client.by.Client(client.name, client.user, client.groups...)
		if err != nil {
			return nil, err
		}
		*client.out = made
	}
	for _, server := range []struct {
		out   **pki.Pair
		by    *pki.Authority
		name  string
		hosts []string
	}{
		{&c.apiServer, c.ca, "kube-apiserver", []string{kubernetesService, "kubernetes", "kubernetes.default", "kubernetes.default.svc"}},
		{&c.healthzOnly, c.ca, "health", nil},
		{&c.etcdServer, c.etcdCA, "etcd", nil},
	} {
		made, err := server.by.Server(server.name, server.hosts...)
		if err != nil {
			return nil, err
		}
		*server.out = made
	}
	return c, nil
}
