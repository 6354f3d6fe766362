// Package client implements the machine's side of joining a cluster. It collects the
// machine's evidence, sends it to the bootstrap service, and writes the token from the
// answer into the kubeconfig from which the kubelet bootstraps.
//
// Call [Run] with the address of the service and a collector of package attest.
//
// Run it once, before the kubelet. It does nothing if the bootstrap kubeconfig exists.
// Until a timeout it retries errors that may be temporary: the service is unreachable or
// busy, the cloud does not know the machine yet, or a node of the same name is being
// removed. Other refusals are final. The kubeconfig is written completely or not at all,
// and no existing file is replaced.
package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/attest"
)

// The defaults of Options, which kops' node-authorizer has too.
const (
	DefaultKubeconfig = "/var/lib/kubelet/bootstrap-kubeconfig"
	DefaultInterval   = 3 * time.Second
	DefaultTimeout    = 30 * time.Second
)

// The defaults for CertificateCredential: the files of kubeadm and of kubelet.
const (
	DefaultKubeletKubeconfig = "/etc/kubernetes/kubelet.conf"
	DefaultCertificateFolder = "/var/lib/kubelet/pki"
)

// Options configure a run. There are no defaults for empty fields.
type Options struct {
	// Collector collects the evidence.
	Collector attest.Collector
	// NodeName is the name to ask for; empty for the name that the collector returns.
	NodeName string
	// ServiceURL is the https URL of the bootstrap service, with or without
	// "/authorize" at its end.
	ServiceURL string
	// ServiceCAFile holds the certificate authorities of the service, PEM.
	ServiceCAFile string
	// CertificateFile and KeyFile hold the client certificate, PEM, if the service
	// requires one; both or none.
	CertificateFile, KeyFile string
	// APIServerURL, https, is written to the kubeconfig, with the authorities in
	// APIServerCAFile; if that is empty, with the authorities of the service.
	APIServerURL, APIServerCAFile string
	// Kubeconfig is the file to write.
	Kubeconfig string
	// Credential is what the file contains; empty: TokenCredential.
	Credential Credential
	// CertificateFolder is where the kubelet keeps its certificates (--cert-dir), for
	// CertificateCredential.
	CertificateFolder string
	// Interval is the maximum time between two tries, unless the service asks for
	// more. Each wait is random, between half of the interval and the whole, so that
	// machines which boot at the same time do not ask at the same time.
	Interval time.Duration
	// Timeout limits how long to retry. The last try begins at the timeout, and may
	// take [LastTry].
	Timeout time.Duration
	// Report is called with one line that says why a try failed and when the next one
	// follows, and, where the reason was the same several times, with one that counts them; may be nil.
	Report func(line string)
}

// LastTry is how long the try at the timeout may take.
const LastTry = 10 * time.Second

// Result is the result of a successful run.
type Result struct {
	// Existed is true if the kubeconfig existed already, so that nothing was done.
	Existed bool
	// NodeName is the name that the token was given for.
	NodeName string
}

// Run writes a kubeconfig, if there is none. The error is a [*Refused] or a
// [*GaveUp], the error of the context, or any other error if the
// options or this machine are at fault.
func Run(ctx context.Context, options Options) (Result, error) {
	if options.Kubeconfig == "" {
		return Result{}, errors.New("no kubeconfig file to write is given")
	}
	existed, err := exists(options.Kubeconfig)
	if existed || err != nil {
		return Result{Existed: existed}, withUser(err, os.Getuid())
	}
	c, err := newClient(options)
	if err != nil {
		return Result{}, withUser(err, os.Getuid())
	}
	result, err := c.join(ctx)
	return result, withUser(err, os.Getuid())
}

// client is one run.
type client struct {
	Options
	service *service
	// authorities are the certificate authorities of the API server, PEM.
	authorities []byte
	drafts      []newDraft
	// pair is nil for TokenCredential.
	pair *pair
	// start is when the first try began.
	start time.Time
}

// newClient checks the options and reads the files that they name.
func newClient(o Options) (*client, error) {
	switch {
	case o.Timeout <= 0:
		return nil, fmt.Errorf("the timeout is %s: want more than zero", o.Timeout)
	case o.Interval <= 0:
		return nil, fmt.Errorf("the interval is %s: want more than zero", o.Interval)
	}
	if err := checkNodeName(o.NodeName); o.NodeName != "" && err != nil {
		return nil, err
	}
	base, err := secureURL("the URL of the bootstrap service", o.ServiceURL)
	if err != nil {
		return nil, err
	}
	if _, err := secureURL("the URL of the API server", o.APIServerURL); err != nil {
		return nil, err
	}
	config, serviceCA, err := trust(o)
	if err != nil {
		return nil, err
	}
	authorities := serviceCA
	if o.APIServerCAFile != "" {
		if authorities, err = readAuthorities(o.APIServerCAFile); err != nil {
			return nil, err
		}
	}
	if o.Report == nil {
		o.Report = func(string) {}
	}
	c := &client{Options: o, service: newService(base, config), authorities: authorities, drafts: draftsHere()}
	switch o.Credential {
	case "", TokenCredential:
	case CertificateCredential:
		if c.pair, err = newPair(o.CertificateFolder); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("the credential is %q: want %s or %s", o.Credential, TokenCredential, CertificateCredential)
	}
	return c, nil
}

// join gets the credential and writes the kubeconfig. It checks first that the file can be
// written.
func (c *client) join(ctx context.Context) (Result, error) {
	defer c.service.closeConnections()
	d, err := c.draft()
	if err != nil {
		return Result{}, err
	}
	defer d.discard()
	name, user, err := c.credential(ctx)
	if err != nil {
		return Result{}, err
	}
	config, err := kubeconfig(c.APIServerURL, c.authorities, user)
	if err != nil {
		return Result{}, err
	}
	existed, err := publish(d, c.Kubeconfig, config)
	if err != nil {
		return Result{}, err
	}
	return Result{Existed: existed, NodeName: name}, nil
}

// credential returns the name of the node, and the credential for the kubeconfig. A certificate of a run that was
// interrupted before it wrote the kubeconfig is used again.
func (c *client) credential(ctx context.Context) (name string, user *api.AuthInfo, err error) {
	if c.pair != nil {
		if name = c.pair.node(c.authorities); name != "" {
			return name, c.pair.user(), nil
		}
		if err := c.pair.makeKey(); err != nil {
			return "", nil, err
		}
	}
	name, granted, err := c.redeem(ctx)
	switch {
	case err != nil:
		return "", nil, err
	case c.pair == nil:
		return name, &api.AuthInfo{Token: string(granted)}, nil
	}
	return name, c.pair.user(), c.certificate(ctx, name, granted)
}

// redeem retries until there is a token or a final answer. The last try begins at the
// timeout.
func (c *client) redeem(ctx context.Context) (name string, granted token, err error) {
	c.start = time.Now()
	limited, cancel := context.WithTimeout(ctx, c.Timeout+LastTry)
	defer cancel()
	told := progress{report: c.Report}
	defer told.end()
	var last *retryable
	for tries := 1; ; tries++ {
		name, granted, failed := c.try(limited)
		if failed == nil {
			return name, granted, nil
		}
		if ctx.Err() != nil {
			return "", "", ctx.Err()
		}
		again := new(retryable)
		if !errors.As(failed, &again) {
			return "", "", failed
		}
		// A try that the timeout cut off says less than the try before it.
		if last == nil || limited.Err() == nil {
			last = again
		}
		left := c.Timeout - time.Since(c.start)
		if left <= 0 {
			return "", "", finalError(last, time.Since(c.start), tries)
		}
		wait := min(c.pause(again.after), left)
		told.failed(again, wait, left)
		c.service.closeConnections()
		if err := sleep(ctx, wait); err != nil {
			return "", "", err
		}
	}
}

// try collects evidence and sends it, once. Errors that may be temporary are *retryable.
func (c *client) try(ctx context.Context) (name string, granted token, err error) {
	if name = c.NodeName; name == "" {
		if name, err = c.Collector.NodeName(ctx); err != nil {
			return "", "", noEvidence("find this machine's node name", err)
		}
		if err := checkNodeName(name); err != nil {
			return "", "", err
		}
	}
	challenge, err := c.service.challenge(ctx)
	if err != nil {
		return "", "", err
	}
	about := attest.Binding{Challenge: challenge}
	if c.pair != nil {
		if about.PublicKey, err = c.pair.publicKey(); err != nil {
			return "", "", err
		}
	}
	evidence, err := c.Collector.Collect(ctx, about)
	if err != nil {
		return "", "", noEvidence("collect this machine's evidence", err)
	}
	granted, err = c.show(ctx, name, about, evidence)
	return name, granted, err
}

// maxRounds limits how often a service can ask for more evidence in one try.
const maxRounds = 4

// show sends evidence, and more of it while the service asks for that.
func (c *client) show(ctx context.Context, name string, about attest.Binding, evidence []byte) (token, error) {
	for range maxRounds {
		granted, challenge, err := c.service.authorize(ctx, name, evidence)
		if err != nil || challenge == nil {
			return granted, err
		}
		responder, ok := c.Collector.(attest.Responder)
		if !ok {
			return "", &Refused{
				Status: http.StatusUnauthorized, Summary: "it asks for another kind of evidence: compare --authorizer with its attestor",
			}
		}
		if evidence, err = responder.Respond(ctx, about, challenge); err != nil {
			return "", noEvidence("answer the challenge of the service", err)
		}
	}
	return "", &retryable{err: fmt.Errorf("the service asked for evidence more than %d times", maxRounds), connected: true}
}
