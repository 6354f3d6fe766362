package conformance

import (
	"context"
	"crypto/x509"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/apis/certificates"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/test/conformance/intree"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// stricter are our denials of requests whose shape kube-controller-manager accepts, with
// the part that it does not check. There are no other differences.
func stricter() map[verdict.Code]string {
	return map[verdict.Code]string{
		approve.CSRMalformed:              "what is around the PEM block, further attributes, the signature",
		approve.WeakKey:                   "the key",
		approve.WrongSubject:              "the subject beside organization and common name; what it is without the prefix",
		approve.ExtensionsNotAllowed:      "extensions beside subject alternative names, which its signer leaves out",
		approve.SubjectAltNamesNotAllowed: "names that crypto/x509 does not read, which its signer leaves out",
		approve.WrongNodeName:             "whose name it is, but for selfnodeclient",
		approve.NotAttested:               "whether anybody knows the machine",
		approve.AddressNotAttested:        "which names and addresses a serving certificate has",
		approve.WrongSigner:               "what a bootstrap token is for",
	}
}

// TestRandomCertificateRequests sends random requests to package approve, with valid data
// about their machine, and to the rules and controllers of kube-controller-manager. If we
// approve a request, its rules accept it, its csrapproving recognizes it, and its signers
// sign it, with a certificate that has only the fields that we checked. Both accept the requests of
// a kubelet.
func TestRandomCertificateRequests(t *testing.T) {
	b := readBudget(t)
	r := rand.New(rand.NewPCG(b.fresh, 5))
	w := newRequestGenerator(t)
	approved, denied := map[string]*certificatesv1.CertificateSigningRequest{}, map[verdict.Code]int{}
	accepted, refused, divergences := 0, 0, 0
	for n := range b.clusters * 30 {
		d := w.draft(r, n)
		answer, shape := approve.Decide(w.question(d)), intreeShape(d.request)
		if shape == nil {
			accepted++
		} else {
			refused++
		}
		why := ""
		switch _, meant := stricter()[answer.Code]; {
		case answer.Outcome == approve.Approve && shape != nil:
			why = "we approve what kube-controller-manager refuses"
		case d.mutation == "" && answer.Outcome != approve.Approve:
			why = "we do not approve what a kubelet asks for"
		case answer.Outcome == approve.Approve:
			approved[d.request.Name] = d.request
		case answer.Outcome == approve.Deny && shape == nil && !meant:
			why = "we deny what kube-controller-manager accepts, for a reason that is not meant to be one"
		case answer.Outcome == approve.Deny && shape == nil:
			denied[answer.Code]++
		}
		if why != "" {
			t.Errorf("%s: %s with %q\n  in-tree: %v\n  ours: %v %s: %s\n%s", why, d.kind, d.mutation, shape, answer.Outcome, answer.Code,
				answer.Message, d.request.Spec.Request)
			if divergences++; divergences > maxDivergences {
				t.FailNow()
			}
		}
	}
	t.Logf("certificate requests: in-tree accepts %d and refuses %d, we approve %d, and deny more strictly %v: %d divergences", accepted,
		refused, len(approved), denied, divergences)
	for code, what := range stricter() {
		if denied[code] == 0 {
			t.Errorf("no request was denied with %s because of %s", code, what)
		}
	}
	if refused == 0 || len(approved) == 0 {
		t.Error("the requests exercise one outcome only")
	}
	checkRecognized(t, approved)
	checkSigned(t, approved)
}

// intreeShape returns the error of kube-controller-manager's signers for a request.
func intreeShape(csr *certificatesv1.CertificateSigningRequest) error {
	parsed, err := certificates.ParseCSR(csr.Spec.Request)
	if err != nil {
		return err
	}
	usages := sets.NewString()
	for _, u := range csr.Spec.Usages {
		usages.Insert(string(u))
	}
	if csr.Spec.SignerName == certificatesv1.KubeletServingSignerName {
		return certificates.ValidateKubeletServingCSR(parsed, usages)
	}
	return certificates.ValidateKubeletClientCSR(parsed, usages)
}

// checkRecognized runs csrapproving on approved requests.
func checkRecognized(t *testing.T, approved map[string]*certificatesv1.CertificateSigningRequest) {
	t.Helper()
	recognized, err := intree.Recognized(t.Context(), slices.Collect(maps.Values(approved)))
	if err != nil {
		t.Fatal(err)
	}
	for name, csr := range approved {
		var want []string
		switch approve.ClaimOf(csr).Kind {
		case approve.Client:
			want = []string{"nodeclient"}
		case approve.Renewal:
			want = []string{"nodeclient", "selfnodeclient"}
		case approve.Serving, approve.Other:
		}
		if got := recognized[name]; !slices.Equal(got, want) {
			t.Errorf("csrapproving recognizes %v in a request that we approved, want %v\n%s", got, want, csr.Spec.Request)
		}
	}
}

// checkSigned runs the signers of kube-controller-manager on approved requests, and
// compares the certificates with the attested data.
func checkSigned(t *testing.T, approved map[string]*certificatesv1.CertificateSigningRequest) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	signed, err := intree.Sign(ctx, t.TempDir(), slices.Collect(maps.Values(approved)))
	if err != nil {
		t.Fatal(err)
	}
	for name, csr := range approved {
		c := signed[name]
		if c == nil {
			t.Errorf("it was not signed:\n%s", csr.Spec.Request)
			continue
		}
		want := x509.ExtKeyUsageClientAuth
		if csr.Spec.SignerName == certificatesv1.KubeletServingSignerName {
			want = x509.ExtKeyUsageServerAuth
		}
		if c.Subject.CommonName != "system:node:worker-1" || !slices.Equal(c.Subject.Organization, []string{"system:nodes"}) ||
			len(c.Subject.Names) != 2 ||
			c.IsCA || c.KeyUsage&^(x509.KeyUsageDigitalSignature|x509.KeyUsageKeyEncipherment) != 0 || !slices.Equal(c.ExtKeyUsage,
			[]x509.ExtKeyUsage{want}) {
			t.Errorf("the certificate is of %s, authority %t, usages %v and %v", c.Subject, c.IsCA, c.KeyUsage, c.ExtKeyUsage)
		}
		for _, dns := range c.DNSNames {
			if want == x509.ExtKeyUsageClientAuth || !slices.Contains(attestedNames(), dns) {
				t.Errorf("the certificate has the name %q", dns)
			}
		}
		for _, ip := range c.IPAddresses {
			if want == x509.ExtKeyUsageClientAuth ||
				!slices.ContainsFunc(attestedAddresses(), func(a string) bool { return net.ParseIP(a).Equal(ip) }) {
				t.Errorf("the certificate has the address %s", ip)
			}
		}
		if len(c.EmailAddresses)+len(c.URIs) > 0 {
			t.Errorf("the certificate has the names %v and %v", c.EmailAddresses, c.URIs)
		}
	}
}

func attestedNames() []string { return []string{"worker-1", "worker-1.internal"} }

func attestedAddresses() []string { return []string{"10.0.0.7", "fd00::7"} }

// question returns the question about a request with otherwise valid data.
func (w *requestGenerator) question(d *requestDraft) *approve.Question {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	entry := &v1alpha1.NodeAttestation{
		ObjectMeta: metav1.ObjectMeta{Name: "aws-i-1", UID: "uid-1"},
		Spec: v1alpha1.NodeAttestationSpec{
			NodeName: "worker-1", TokenID: "abc123", TokenExpiration: metav1.NewTime(now.Add(time.Minute)),
			Names: attestedNames(), Addresses: attestedAddresses(),
		},
	}
	return &approve.Question{
		Request: d.request, Now: now, Entry: entry, Entries: []*v1alpha1.NodeAttestation{entry}, SelfNodeServer: true,
	}
}
