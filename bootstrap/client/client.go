// Package client is the machine's side of joining a cluster: it collects the
// machine's evidence, shows it to the bootstrap service, and writes the token
// that it gets into the kubeconfig from which the kubelet bootstraps.
//
// Call [Run] with the address of the service and a collector of package attest.
//
// It runs once, before the kubelet. A machine that has its bootstrap kubeconfig
// is left alone. What can pass is tried again until a timeout: a service that
// cannot be reached or is too busy, a cloud that does not know of the machine
// yet, a node of the same name that is being removed. A refusal of another kind
// is final. The kubeconfig appears whole or not at all, whatever happens, and
// nothing that exists is replaced.
package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/node-authorizer/node-authorizer/attest"
)

// The defaults of Options, which are those that kops' node-authorizer had.
const (
	DefaultKubeconfig = "/var/lib/kubelet/bootstrap-kubeconfig"
	DefaultInterval   = 3 * time.Second
	DefaultTimeout    = 30 * time.Second
)

// Options say who asks whom for what. Nothing in it has a default here.
type Options struct {
	// Collector collects the evidence.
	Collector attest.Collector
	// NodeName is the name to ask for; empty for the collector's.
	NodeName string
	// ServiceURL is that of the bootstrap service, https, with or without
	// "/authorize" at its end.
	ServiceURL string
	// ServiceCAFile has the authorities of the service's certificate, PEM.
	ServiceCAFile string
	// CertificateFile and KeyFile are the client certificate, PEM, where the
	// service demands one; both or none.
	CertificateFile, KeyFile string
	// APIServerURL, https, goes into the kubeconfig, with the authorities in
	// APIServerCAFile; where that is empty, with those of the service.
	APIServerURL, APIServerCAFile string
	// Kubeconfig is the file to write.
	Kubeconfig string
	// Interval is how long to wait between two tries at most, unless the service
	// asks for more: each wait is drawn from the half of it to the whole, so that
	// machines which boot at once do not ask at once.
	Interval time.Duration
	// Timeout is how long to try. The last try begins when it is over, and has
	// [LastTry] for its answer.
	Timeout time.Duration
	// Tell is told, in one line, why there will be another try; nil for nobody.
	Tell func(line string)
}

// LastTry is how long the try may take that begins at the end of the timeout.
const LastTry = 10 * time.Second

// Result is how a run went well.
type Result struct {
	// Existed tells that the kubeconfig was there already, so that nothing was
	// done.
	Existed bool
	// NodeName is the name that the token was given for.
	NodeName string
}

// Run writes a bootstrap kubeconfig, if there is none. Its error is a [*Refused],
// an [*Unreachable] or a [*TimedOut], the context's if that has ended, or any
// other where the options or this machine are at fault.
func Run(ctx context.Context, options Options) (Result, error) {
	if options.Kubeconfig == "" {
		return Result{}, errors.New("no kubeconfig file to write is given")
	}
	existed, err := exists(options.Kubeconfig)
	if existed || err != nil {
		return Result{Existed: existed}, ofUser(err, os.Getuid())
	}
	c, err := newClient(options)
	if err != nil {
		return Result{}, ofUser(err, os.Getuid())
	}
	result, err := c.join(ctx)
	return result, ofUser(err, os.Getuid())
}

// client is one run.
type client struct {
	Options
	service *service
	// authorities are those of the API server, PEM.
	authorities []byte
	drafts      []newDraft
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
	if o.Tell == nil {
		o.Tell = func(string) {}
	}
	return &client{Options: o, service: newService(base, config), authorities: authorities, drafts: draftsHere()}, nil
}

// join asks until there is a token, and writes it down. That nothing can be
// written is found before a token is asked for, where it can be.
func (c *client) join(ctx context.Context) (Result, error) {
	defer c.service.forget()
	d, err := c.draft()
	if err != nil {
		return Result{}, err
	}
	defer d.discard()
	name, granted, err := c.redeem(ctx)
	if err != nil {
		return Result{}, err
	}
	config, err := kubeconfig(c.APIServerURL, c.authorities, granted)
	if err != nil {
		return Result{}, err
	}
	existed, err := publish(d, c.Kubeconfig, config)
	if err != nil {
		return Result{}, err
	}
	return Result{Existed: existed, NodeName: name}, nil
}

// redeem tries until there is a token or a final answer, and for the last time when
// the timeout is over.
func (c *client) redeem(ctx context.Context) (name string, granted token, err error) {
	begun := time.Now()
	limited, cancel := context.WithTimeout(ctx, c.Timeout+LastTry)
	defer cancel()
	var last *later
	for tries := 1; ; tries++ {
		name, granted, failed := c.try(limited)
		if failed == nil {
			return name, granted, nil
		}
		if ctx.Err() != nil {
			return "", "", ctx.Err()
		}
		again := new(later)
		if !errors.As(failed, &again) {
			return "", "", failed
		}
		// What the end of the time cut short says less than the try before it.
		if last == nil || limited.Err() == nil {
			last = again
		}
		left := c.Timeout - time.Since(begun)
		if left <= 0 {
			return "", "", finally(last, time.Since(begun), tries)
		}
		wait := min(c.pause(again.after), left)
		c.Tell(fmt.Sprintf("%v; trying again in %s", again, wait.Round(time.Millisecond)))
		c.service.forget()
		if err := sleep(ctx, wait); err != nil {
			return "", "", err
		}
	}
}

// try collects evidence and shows it, once. Errors that can pass are *later.
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
	evidence, err := c.Collector.Collect(ctx, challenge)
	if err != nil {
		return "", "", noEvidence("collect this machine's evidence", err)
	}
	granted, err = c.service.authorize(ctx, name, evidence)
	return name, granted, err
}
