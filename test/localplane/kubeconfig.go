package localplane

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/test/localplane/internal/pki"
)

// clusterName is the name of the plane in kubeconfigs.
const clusterName = "localplane"

// writeKubeconfig writes a kubeconfig with embedded certificates, so that the file can be
// copied elsewhere.
func (p *Plane) writeKubeconfig(name string, user *clientcmdapi.AuthInfo) (string, error) {
	path := p.layout.kubeconfig(name)
	return path, p.writeKubeconfigTo(path, name, user)
}

func (p *Plane) writeKubeconfigTo(path, name string, user *clientcmdapi.AuthInfo) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[clusterName] = &clientcmdapi.Cluster{
		Server:                   p.server,
		CertificateAuthorityData: p.certificates.ca.Cert,
	}
	config.AuthInfos[name] = user
	config.Contexts[clusterName] = &clientcmdapi.Context{Cluster: clusterName, AuthInfo: name}
	config.CurrentContext = clusterName
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write the kubeconfig of %s: %w", name, err)
	}
	return nil
}

func withCertificate(pair *pki.Pair) *clientcmdapi.AuthInfo {
	return &clientcmdapi.AuthInfo{ClientCertificateData: pair.Cert, ClientKeyData: pair.Key}
}

// AdminKubeconfig returns the path of the kubeconfig of a user in system:masters, who is
// allowed everything regardless of the authorizers.
func (p *Plane) AdminKubeconfig() string { return p.layout.kubeconfig("admin") }

// UserKubeconfig makes a client certificate for a user in groups and returns the path of
// a kubeconfig with it. The file has the given name.
func (p *Plane) UserKubeconfig(name, user string, groups ...string) (string, error) {
	pair, err := p.certificates.ca.Client("user-"+name, user, groups...)
	if err != nil {
		return "", err
	}
	return p.writeKubeconfig(name, withCertificate(pair))
}

// TokenKubeconfig returns the path of a kubeconfig with a bearer token, for
// example a bootstrap token. The file has the given name.
func (p *Plane) TokenKubeconfig(name, token string) (string, error) {
	return p.writeKubeconfig(name, &clientcmdapi.AuthInfo{Token: token})
}

// ServingCertificate makes a certificate for a server on this machine, for example a
// webhook, and returns the paths of its PEM files. It is valid for localhost, 127.0.0.1
// and the given hosts, and signed by the authority in [Plane.CAFile].
func (p *Plane) ServingCertificate(name string, hosts ...string) (certFile, keyFile string, err error) {
	pair, err := p.certificates.ca.Server("server-"+name, hosts...)
	if err != nil {
		return "", "", err
	}
	return pair.CertFile, pair.KeyFile, nil
}

// ClientCertificate makes a client certificate for a user in groups, and returns the
// paths of its PEM files.
func (p *Plane) ClientCertificate(name, user string, groups ...string) (certFile, keyFile string, err error) {
	pair, err := p.certificates.ca.Client("client-"+name, user, groups...)
	if err != nil {
		return "", "", err
	}
	return pair.CertFile, pair.KeyFile, nil
}

// CAFile returns the path of the certificate of the cluster's authority.
func (p *Plane) CAFile() string { return p.certificates.ca.CertFile }

// CAKeyFile returns the path of its key, for tests that sign certificates.
func (p *Plane) CAKeyFile() string { return p.certificates.ca.KeyFile }
