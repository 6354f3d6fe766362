package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"golang.org/x/sync/errgroup"

	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// servingCluster is a real control plane whose API server has the objects of a
// layout. Its controllers are stopped: they would take away pods of nodes that
// do not run.
type servingCluster struct {
	plane  *localplane.Plane
	layout layout
	client *tls.Config // of the API server and of the servers under test
	// moreConfig is added to the config files of servers that are started later.
	moreConfig string
}

// newServingCluster starts a control plane and fills it.
func (b *bench) newServingCluster(l layout) (*servingCluster, error) {
	plane, err := localplane.Start(b.ctx, localplane.Options{
		Authorization: localplane.InTree,
		// Without it, every pod would need an account that exists.
		ExtraArgs: map[localplane.Component][]string{localplane.APIServer: {"--disable-admission-plugins=ServiceAccount"}},
		Progress:  b.status,
	})
	if err != nil {
		return nil, err
	}
	c := &servingCluster{plane: plane, layout: l}
	if err := c.prepare(b); err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	return c, nil
}

func (c *servingCluster) prepare(b *bench) error {
	for _, controller := range []localplane.Component{localplane.ControllerManager, localplane.Scheduler} {
		if err := c.plane.StopComponent(controller); err != nil {
			return err
		}
	}
	var err error
	if c.client, err = c.clientTLS(); err != nil {
		return err
	}
	config := c.plane.AdminConfig()
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	b.log("serving: creating %d nodes and %d pods", c.layout.nodes, c.layout.pods)
	return c.fill(b.ctx, client)
}

// clientTLS has the certificate that an API server would show to its webhooks; for the API
// server itself its user may do everything.
func (c *servingCluster) clientTLS() (*tls.Config, error) {
	certFile, keyFile, err := c.plane.ClientCertificate("bench", "bench", "system:masters")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate: %w", err)
	}
	authority, err := os.ReadFile(c.plane.CAFile())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}, ServerName: "127.0.0.1"}, nil
}

// fill creates the objects, several at a time.
func (c *servingCluster) fill(ctx context.Context, client kubernetes.Interface) error {
	err := each(ctx, c.layout.namespaces, func(ctx context.Context, i int) error {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName(i)}}
		_, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	err = each(ctx, c.layout.nodes, func(ctx context.Context, i int) error {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return each(ctx, c.layout.pods, func(ctx context.Context, i int) error {
		pod := c.layout.pod(i)
		pod.Spec.Containers[0].Image = "registry.k8s.io/pause:3.10"
		_, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // a retry of the client
		}
		return err
	})
}

// each creates n objects, several at a time.
func each(ctx context.Context, n int, create func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(connections)
	for i := range n {
		group.Go(func() error { return create(ctx, i) })
	}
	return group.Wait()
}

// server is a process under test.
type server struct {
	pid     int
	address string
	// resident is the memory, in bytes, that it has when it is ready.
	resident float64
	// starting is the time and memory that it used until it was ready.
	starting used
}

// serve starts a program with a config file as its last argument.
func (c *servingCluster) serve(b *bench, name, binary string, args ...string) (*server, error) {
	port, err := c.plane.TakePort()
	if err != nil {
		return nil, err
	}
	certFile, keyFile, err := c.plane.ServingCertificate(name)
	if err != nil {
		return nil, err
	}
	s := &server{address: fmt.Sprintf("127.0.0.1:%d", port)}
	config := filepath.Join(c.plane.Dir, name+".yaml")
	text := fmt.Sprintf(serverConfig, c.plane.AdminKubeconfig(), s.address, certFile, keyFile, c.plane.CAFile())
	if err := os.WriteFile(config, []byte(text+c.moreConfig), 0o600); err != nil {
		return nil, err
	}
	begin := time.Now()
	_, err = c.plane.AddProgram(b.ctx, name, localplane.ProgramOptions{
		Path: binary, Args: append(args, config),
		Ready: func(ctx context.Context) error { return c.ready(ctx, s.address) },
	})
	if err != nil {
		return nil, err
	}
	s.starting.time = time.Since(begin)
	if s.pid, err = processOf(config); err != nil {
		return nil, err
	}
	s.starting.processor, s.starting.peak, s.resident = processTimeOf(s.pid), peakMemory(s.pid), residentMemory(s.pid)
	return s, nil
}

// apiServer is kube-apiserver as one of those that are asked.
func (c *servingCluster) apiServer() (*server, error) { return apiServerOf(c.plane) }

func apiServerOf(p *localplane.Plane) (*server, error) {
	at, err := url.Parse(p.Server())
	if err != nil {
		return nil, err
	}
	pid, err := processOf("--secure-port=" + at.Port())
	return &server{address: at.Host, pid: pid}, err
}

const serverConfig = `apiVersion: config.node-authorizer.io/v1alpha1
kind: ServerConfiguration
cluster: {kubeconfig: %q}
webhook: {address: %q, certificateFile: %q, keyFile: %q, clientCAFile: %q, allowedClientNames: [bench]}
metrics: {address: ""}
authorization: {freshnessWait: 0s}
admission: {freshnessWait: 0s}
log: {refusals: {verbosity: 10}}
`

// ready asks /readyz once.
func (c *servingCluster) ready(ctx context.Context, address string) error {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: c.client.Clone()}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", response.Status)
	}
	return nil
}

// processOf finds the process that was started with an argument.
func processOf(argument string) (int, error) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, folder := range folders {
		line, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil {
			continue // has ended
		}
		for given := range strings.SplitSeq(string(line), "\x00") {
			if given == argument {
				return strconv.Atoi(filepath.Base(folder))
			}
		}
	}
	return 0, fmt.Errorf("no process was started with the argument %s", argument)
}
