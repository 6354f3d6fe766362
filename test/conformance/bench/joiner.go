package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"golang.org/x/sync/errgroup"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/test/e2e/machines"
)

// joiner is one machine, with all that it can prepare before it joins.
type joiner struct {
	cluster  *joinCluster
	name     string
	address  netip.Addr
	evidence []byte
	request  []byte // for a certificate, PEM
	roots    *x509.CertPool
}

// launch makes machines that have not joined yet.
func (c *joinCluster) launch(n int) ([]*joiner, error) {
	authority, err := os.ReadFile(c.CAFile())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	joining := make([]*joiner, n)
	group := new(errgroup.Group)
	for i := range joining {
		c.joined++
		m := &joiner{cluster: c, address: netip.AddrFrom4([4]byte{127, c.network, byte(c.joined >> 8), byte(c.joined)}), roots: roots}
		joining[i] = m
		group.Go(m.boot)
	}
	return joining, group.Wait()
}

// boot launches the machine's instance, and makes its key.
func (m *joiner) boot() error {
	instance := m.cluster.Cloud.Launch(fakeaws.Instance{
		Tags:       map[string]string{"KubernetesCluster": machines.Name},
		Interfaces: []fakeaws.Interface{{Private: []netip.Addr{m.address}}},
	})
	m.name = instance.PrivateDNSName
	document := m.cluster.Cloud.Signer().RSA2048(instance.Document(), instance.PendingTime.Add(3*time.Second))
	var err error
	if m.evidence, err = json.Marshal(struct{ Document []byte }{[]byte(document)}); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + m.name, Organization: []string{"system:nodes"}}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	m.request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return err
}

// join goes the whole way and says how long it took to the token and to the
// certificate.
func (m *joiner) join(ctx context.Context) (token, certificate time.Duration, err error) {
	begun := time.Now()
	granted, err := m.attest(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("machine %s: asking for a token: %w", m.name, err)
	}
	token = time.Since(begun)
	if err := m.certify(ctx, granted); err != nil {
		return 0, 0, fmt.Errorf("machine %s: asking for a certificate: %w", m.name, err)
	}
	return token, time.Since(begun), nil
}

// attest shows the evidence, as internal/join/client does, from the machine's
// address.
func (m *joiner) attest(ctx context.Context) (string, error) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: m.address.AsSlice()}}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: m.roots}, DialContext: dialer.DialContext}}
	defer client.CloseIdleConnections()
	service := "https://" + m.cluster.Replicas[0].Address
	if _, err := exchange(ctx, client, http.MethodGet, service+"/challenge", nil, http.StatusNotFound); err != nil {
		return "", err
	}
	text, err := exchange(ctx, client, http.MethodPost, service+"/authorize/"+m.name, m.evidence, http.StatusOK)
	if err != nil {
		return "", err
	}
	var answer struct{ Status struct{ Token string } }
	if err := json.Unmarshal(text, &answer); err != nil {
		return "", err
	}
	return answer.Status.Token, nil
}

// exchange returns an answer of the status that is wanted.
func exchange(ctx context.Context, client *http.Client, method, url string, body []byte, want int) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != want {
		err = fmt.Errorf("%s %s: %s: %s", method, url, response.Status, text)
	}
	return text, err
}

// certify asks kube-apiserver for a certificate and waits until it is there.
func (m *joiner) certify(ctx context.Context, token string) error {
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: m.cluster.Server(), BearerToken: token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAFile: m.cluster.CAFile()},
	})
	if err != nil {
		return err
	}
	requests := client.CertificatesV1().CertificateSigningRequests()
	wanted := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "node-csr-" + m.name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: m.request, SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	made, err := requests.Create(ctx, wanted, metav1.CreateOptions{})
	for apierrors.IsUnauthorized(err) { // kube-apiserver has not seen the token yet
		if err := ctx.Err(); err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
		made, err = requests.Create(ctx, wanted, metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	watch, err := requests.Watch(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=" + made.Name, ResourceVersion: made.ResourceVersion})
	if err != nil {
		return err
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		request, ok := event.Object.(*certificatesv1.CertificateSigningRequest)
		if !ok {
			return apierrors.FromObject(event.Object)
		}
		for _, c := range request.Status.Conditions {
			if c.Type != certificatesv1.CertificateApproved {
				return fmt.Errorf("%s: %s: %s", c.Type, c.Reason, c.Message)
			}
		}
		if len(request.Status.Certificate) > 0 {
			return nil
		}
	}
	return errors.New("the watch of the request ended")
}

// fillTokens creates tokens that stay unused.
func (c *joinCluster) fillTokens(ctx context.Context) error {
	config := c.AdminConfig()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	tomorrow := time.Now().AddDate(0, 0, 1).UTC().Format(time.RFC3339)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range c.tokens {
		id := fmt.Sprintf("%06d", i)
		group.Go(func() error {
			_, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id},
				Type:       corev1.SecretTypeBootstrapToken,
				StringData: map[string]string{
					"token-id": id, "token-secret": "0123456789abcdef", "expiration": tomorrow,
					"usage-bootstrap-authentication": "true", "auth-extra-groups": "system:bootstrappers:other",
				},
			}, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil // a retry of the client
			}
			return err
		})
	}
	return group.Wait()
}
