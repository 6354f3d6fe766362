package machines

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
)

// certificates are the certificates of one kubelet.
type certificates struct{ client, serving *x509.Certificate }

// firstCertificates waits until a kubelet serves, and returns its certificates.
func firstCertificates(ctx context.Context, m *Machine) (c certificates, err error) {
	err = await.Until(ctx, "the kubelet serves", func(context.Context) (err error) {
		c, err = certificatesOf(m)
		return err
	})
	return c, err
}

// certificatesOf returns the certificates that the kubelet uses now.
func certificatesOf(m *Machine) (c certificates, err error) {
	config, err := m.Node.Config()
	if err != nil {
		return c, err
	}
	pair, err := tls.LoadX509KeyPair(config.CertFile, config.KeyFile)
	if err != nil {
		return c, err
	}
	c.client = pair.Leaf
	c.serving, err = served(m.cluster, m, m.Address.String())
	return c, err
}

// TestRotation shows kubelets that run longer than their certificates are valid. They
// renew each certificate through the approver, and their nodes stay ready.
func TestRotation(t *testing.T) {
	for machine, first := range renewing {
		t.Run(machine.NodeName(), func(t *testing.T) { outlives(t, machine, first) })
	}
	t.Run("the approver approved the requests", approvedByUs)
	looks, notReady := unready.seen()
	if looks == 0 || len(notReady) > 0 {
		t.Errorf("in %d checks these were not ready: %v", looks, notReady)
	}
}

// outlives waits until the first certificates have expired, and checks the certificates
// that replaced them.
func outlives(t *testing.T, machine *Machine, first certificates) {
	eventually(t, "its first certificates have ended", func(context.Context) error {
		for _, certificate := range []*x509.Certificate{first.client, first.serving} {
			if left := time.Until(certificate.NotAfter); left > 0 {
				return fmt.Errorf("one is valid for another %s", left)
			}
		}
		return nil
	})
	now, err := certificatesOf(machine)
	orFatal(t, err)
	if now.client.Equal(first.client) || time.Now().After(now.client.NotAfter) {
		t.Errorf("its client certificate ended at %s", now.client.NotAfter)
	}
	if now.serving.Equal(first.serving) {
		t.Error("it serves with its first certificate")
	}
	orFatal(t, machine.Ready(t.Context()))
	eventually(t, "the ledger knows of a later certificate", func(ctx context.Context) error {
		entry, err := shortLived.Entry(ctx, machine)
		if err == nil && !entry.Status.CertificateExpiration.After(first.client.NotAfter) {
			err = fmt.Errorf("it says %s", entry.Status.CertificateExpiration)
		}
		return err
	})
	eventually(t, "the ledger has the certificate that it uses as the machine's", func(ctx context.Context) error {
		now, err := certificatesOf(machine)
		if err != nil {
			return err
		}
		entry, err := shortLived.Entry(ctx, machine)
		if err == nil && !slices.Contains(entry.Status.Credentials, approve.CredentialID(now.client)) {
			err = fmt.Errorf("it has %s", entry.Status.Credentials)
		}
		return err
	})
}

// approvedByUs checks who approved the requests, and for which reason.
func approvedByUs(t *testing.T) {
	requests, err := shortLived.Client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	orFatal(t, err)
	reasons := map[string]int{}
	for _, request := range requests.Items {
		for _, condition := range request.Status.Conditions {
			if condition.Type != certificatesv1.CertificateApproved {
				t.Errorf("%s of %s: %s %s: %s", request.Spec.SignerName, request.Spec.Username, condition.Type, condition.Reason,
					condition.Message)
			}
			reasons[condition.Reason]++
		}
	}
	if reasons[string(approve.ClientCertificateApproved)] != len(renewing) {
		t.Errorf("machines got their first certificate %d times, not %d: %v", reasons[string(approve.ClientCertificateApproved)],
			len(renewing), reasons)
	}
	for _, reason := range []string{string(approve.RenewalApproved), string(approve.ServingCertificateApproved)} {
		if reasons[reason] < 2*len(renewing) {
			t.Errorf("%s happened %d times", reason, reasons[reason])
		}
	}
	if len(reasons) != 3 {
		t.Errorf("others approved too: %v", reasons)
	}
}
