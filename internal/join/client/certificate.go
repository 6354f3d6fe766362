package client

import (
	"context"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/keyutil"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Credential is what a run leaves for the kubelet.
type Credential string

const (
	// TokenCredential is a bootstrap kubeconfig with a token. The kubelet makes its key.
	TokenCredential Credential = "token"
	// CertificateCredential is a kubeconfig with the kubelet's client certificate. The client makes
	// the key before it shows its evidence, and uses the token itself.
	CertificateCredential Credential = "certificate"
)

// The names of the files in the kubelet's folder of certificates
// (https://kubernetes.io/docs/reference/access-authn-authz/kubelet-tls-bootstrapping/).
const (
	// pairName is the prefix of the files with a certificate and its key.
	pairName = "kubelet-client"
	// keyName is the file of the key until there is a certificate. A client that was interrupted
	// uses it again.
	keyName = "kubelet-client.key.tmp"
)

// pair is the key of the kubelet's client certificate, and the store for both.
type pair struct {
	folder string
	store  certificate.FileStore
	// text is the key in PEM. Both are set by makeKey.
	text []byte
	key  crypto.Signer
}

func newPair(folder string) (*pair, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of certificates: %w", err)
	}
	p := &pair{folder: folder}
	var err error
	if p.store, err = certificate.NewFileStore(pairName, folder, folder, "", ""); err != nil {
		return nil, fmt.Errorf("opening the folder of certificates: %w", err)
	}
	return p, nil
}

// makeKey reads the key of an interrupted run, or makes one.
func (p *pair) makeKey() error {
	var err error
	if p.text, _, err = keyutil.LoadOrGenerateKeyFile(p.keyFile()); err != nil {
		return fmt.Errorf("making the key: %w", err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(p.text)
	if err != nil {
		return fmt.Errorf("reading the key %s: %w; remove the file to make another", p.keyFile(), err)
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return fmt.Errorf("the key %s cannot sign; remove the file to make another", p.keyFile())
	}
	p.key = signer
	return nil
}

func (p *pair) keyFile() string { return filepath.Join(p.folder, keyName) }

// publicKey is the hash of the public key, as in the ledger.
func (p *pair) publicKey() (string, error) { return v1alpha1.HashOf(p.key.Public()) }

// node returns the node of a stored certificate that is valid and of the authorities; empty if there is none.
func (p *pair) node(authorities []byte) string {
	current, err := p.store.Current()
	if err != nil {
		return ""
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities)
	_, err = current.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return ""
	}
	name, _ := strings.CutPrefix(current.Leaf.Subject.CommonName, nodeidentity.UserPrefix)
	return name
}

// user returns what a kubeconfig has about the certificate: the file that a kubelet replaces when it renews it.
func (p *pair) user() *api.AuthInfo {
	return &api.AuthInfo{ClientCertificate: p.store.CurrentPath(), ClientKey: p.store.CurrentPath()}
}

// save stores the certificate with its key, as a kubelet does, and removes the key's own file.
func (p *pair) save(certificates []byte) error {
	if _, err := p.store.Update(certificates, p.text); err != nil {
		return fmt.Errorf("storing the certificate: %w", err)
	}
	return os.Remove(p.keyFile())
}

const (
	// issueInterval is the time between two looks at a request.
	issueInterval = time.Second
	// shownToken is how much of a token names a request: its public half.
	shownToken = 6
)

// certificate uses a token to get a certificate for the node, and stores it. The error is a
// [*Refused] if the request is denied.
func (c *client) certificate(run context.Context, name string, granted token) error {
	requests, err := certificatesclient.NewForConfig(&rest.Config{
		Host: c.APIServerURL, BearerToken: string(granted),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.authorities},
	})
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	request, err := c.request(name, granted)
	if err != nil {
		return err
	}
	tries := 0
	ctx, cancel := context.WithTimeout(run, max(c.Timeout-time.Since(c.start), LastTry))
	defer cancel()
	for last := error(nil); ; {
		tries++
		issued, err := issue(ctx, requests.CertificateSigningRequests(), request)
		switch {
		case err == nil && len(issued) > 0:
			return c.pair.save(issued)
		case isRefused(err):
			return err
		case err != nil && ctx.Err() == nil:
			last = fmt.Errorf("ask for the certificate: %w", err)
		case last == nil:
			last = fmt.Errorf("certificate signing request %s is not approved or not signed yet", request.Name)
		}
		if sleep(ctx, issueInterval) != nil {
			if run.Err() != nil {
				return run.Err()
			}
			return &GaveUp{Connected: true, After: time.Since(c.start), Tries: tries, Err: last}
		}
	}
}

func isRefused(err error) bool { return errors.As(err, new(*Refused)) }

// request returns the request for the node's certificate. A run that was interrupted, with the same key and
// token, made one of the same name.
func (c *client) request(name string, granted token) (*certificatesv1.CertificateSigningRequest, error) {
	subject := pkix.Name{CommonName: nodeidentity.UserPrefix + name, Organization: []string{nodeidentity.Group}}
	text, err := cert.MakeCSR(c.pair.key, &subject, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("making the certificate signing request: %w", err)
	}
	publicKey, err := c.pair.publicKey()
	if err != nil {
		return nil, err
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("node-csr-%.*s-%.20s", shownToken, string(granted), strings.TrimPrefix(publicKey, "sha256:")),
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: text, SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, nil
}

// issue creates the request, if there is none, and returns its certificate; nothing if it is not issued yet.
func issue(
	ctx context.Context, requests certificatesclient.CertificateSigningRequestInterface, wanted *certificatesv1.CertificateSigningRequest,
) ([]byte, error) {
	request, err := requests.Get(ctx, wanted.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		request, err = requests.Create(ctx, wanted, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, err
	}
	for _, condition := range request.Status.Conditions {
		stopped := condition.Type == certificatesv1.CertificateDenied || condition.Type == certificatesv1.CertificateFailed
		if stopped && condition.Status != corev1.ConditionFalse {
			return nil, &Refused{Code: verdict.Code(condition.Reason), Summary: cut(fmt.Sprintf("certificate signing request %s is %s: %s",
				request.Name, strings.ToLower(string(condition.Type)), condition.Message))}
		}
	}
	return request.Status.Certificate, nil
}
