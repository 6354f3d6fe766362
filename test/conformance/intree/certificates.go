package intree

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	kubecertificates "k8s.io/kubernetes/pkg/controller/certificates"
	"k8s.io/kubernetes/pkg/controller/certificates/approver"
	"k8s.io/kubernetes/pkg/controller/certificates/signer"
)

// nameExtra is an extra field of a requester with the name of its request.
const nameExtra = "example.com/request"

// Recognized runs csrapproving on requests without any rights, and returns by name the
// rights that it checks: subresources of certificatesigningrequests, sorted.
func Recognized(ctx context.Context, requests []*certificatesv1.CertificateSigningRequest) (map[string][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if len(requests) == 0 {
		return nil, errors.New("there are no requests to recognize")
	}
	asked := &questions{of: map[string]map[string]bool{}, done: make(chan struct{})}
	client := fake.NewClientset()
	client.PrependReactor("create", "subjectaccessreviews", asked.review)
	factory := informers.NewSharedInformerFactory(client, 0)
	controller := approver.NewCSRApprovingController(ctx, client, factory.Certificates().V1().CertificateSigningRequests())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	factory.Start(ctx.Done())
	// One worker processes the requests sequentially.
	running.Go(func() { controller.Run(ctx, 1) })
	factory.WaitForCacheSync(ctx.Done())
	for _, request := range append(named(requests), last(requests)...) {
		if _, err := client.CertificatesV1().CertificateSigningRequests().Create(ctx, request, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	select {
	case <-asked.done:
	case <-ctx.Done():
		return nil, errors.New("csrapproving did not come to the last request")
	}
	return asked.answers(), nil
}

// named returns copies of the requests with their names in an extra field.
func named(requests []*certificatesv1.CertificateSigningRequest) []*certificatesv1.CertificateSigningRequest {
	var copies []*certificatesv1.CertificateSigningRequest
	for _, request := range requests {
		request = request.DeepCopy()
		request.Spec.Extra = map[string]certificatesv1.ExtraValue{nameExtra: {request.Name}}
		copies = append(copies, request)
	}
	return copies
}

const lastRequest = "last"

// last is a request which is recognized after all others.
func last(requests []*certificatesv1.CertificateSigningRequest) []*certificatesv1.CertificateSigningRequest {
	for _, request := range requests {
		if request.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName {
			request = request.DeepCopy()
			request.Name = lastRequest
			return named([]*certificatesv1.CertificateSigningRequest{request})
		}
	}
	return nil
}

// questions are the access reviews of csrapproving, by request.
type questions struct {
	mu   sync.Mutex
	of   map[string]map[string]bool
	done chan struct{}
}

func (q *questions) review(action clienttesting.Action) (bool, runtime.Object, error) {
	review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
	q.mu.Lock()
	defer q.mu.Unlock()
	name := review.Spec.Extra[nameExtra][0]
	if name == lastRequest {
		if q.of[name] == nil {
			q.of[name] = map[string]bool{}
			close(q.done)
		}
		return true, review, nil
	}
	if q.of[name] == nil {
		q.of[name] = map[string]bool{}
	}
	q.of[name][review.Spec.ResourceAttributes.Subresource] = true
	return true, review, nil
}

func (q *questions) answers() map[string][]string {
	q.mu.Lock()
	defer q.mu.Unlock()
	answers := map[string][]string{}
	for name, subresources := range q.of {
		answers[name] = slices.Sorted(maps.Keys(subresources))
	}
	return answers
}

// Sign approves requests, runs the signers of kube-controller-manager for kubelets on
// them, and returns the certificates by the names of the requests. It is an error if one
// is refused, or takes longer than the context.
func Sign(ctx context.Context, directory string,
	requests []*certificatesv1.CertificateSigningRequest,
) (map[string]*x509.Certificate, error) {
	certificate, key, err := authority(directory)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var approved []runtime.Object
	for _, request := range requests {
		request = request.DeepCopy()
		request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
			{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"},
		}
		approved = append(approved, request)
	}
	client := fake.NewClientset(approved...)
	written := make(chan *certificatesv1.CertificateSigningRequest, 2*len(requests))
	client.PrependReactor("update", "certificatesigningrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		written <- action.(clienttesting.UpdateAction).GetObject().(*certificatesv1.CertificateSigningRequest).DeepCopy()
		return false, nil, nil
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	csrs := factory.Certificates().V1().CertificateSigningRequests()
	clients, err := signer.NewKubeletClientCSRSigningController(ctx, client, csrs, certificate, key, time.Hour)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start the signer of client certificates: %w", err)
	}
	servers, err := signer.NewKubeletServingCSRSigningController(ctx, client, csrs, certificate, key, time.Hour)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start the signer of serving certificates: %w", err)
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	factory.Start(ctx.Done())
	running.Go(func() { clients.Run(ctx, 1) })
	running.Go(func() { servers.Run(ctx, 1) })
	return collect(ctx, written, len(requests))
}

// collect waits for n certificates.
func collect(ctx context.Context, written <-chan *certificatesv1.CertificateSigningRequest, n int) (map[string]*x509.Certificate, error) {
	signed := map[string]*x509.Certificate{}
	for len(signed) < n {
		select {
		case request := <-written:
			if kubecertificates.HasTrueCondition(request, certificatesv1.CertificateFailed) {
				return nil, fmt.Errorf("the signer refuses %v:\n%s", request.Status.Conditions, request.Spec.Request)
			}
			block, _ := pem.Decode(request.Status.Certificate)
			if block == nil {
				return nil, fmt.Errorf("the signer made no certificate of %s", request.Name)
			}
			made, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, err
			}
			signed[request.Name] = made
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d certificates were made: %w", len(signed), n, ctx.Err())
		}
	}
	return signed, nil
}

// authority writes the files of a new certificate authority.
func authority(directory string) (certificate, key string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	made, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "test"}, private)
	if err != nil {
		return "", "", err
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(private)
	if err != nil {
		return "", "", err
	}
	certificate, key = filepath.Join(directory, "ca.crt"), filepath.Join(directory, "ca.key")
	encoded := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: made.Raw})
	return certificate, key, errors.Join(os.WriteFile(certificate, encoded, 0o600), os.WriteFile(key, text, 0o600))
}
