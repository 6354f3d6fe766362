package machines

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/test/e2e/faultproxy"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// Machine is one virtual machine.
type Machine struct {
	// Address is its private address.
	Address netip.Addr
	// Instance is the launched instance.
	Instance fakeaws.Instance
	// Metadata is its metadata service.
	Metadata *fakeaws.Metadata
	// Node is its kubelet. It is nil before StartKubelet.
	Node *localplane.Node

	cluster *Cluster
	dir     string
	// proxy forwards the machine's connections, from its address, to one of the replicas
	// that run.
	proxy *faultproxy.Proxy
}

// Launch starts a machine. Functions may change the instance.
func (c *Cluster) Launch(changes ...func(*fakeaws.Instance)) (*Machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.machines) + 1
	address := netip.AddrFrom4([4]byte{127, c.options.Network, byte(n >> 8), byte(n)})
	instance := fakeaws.Instance{
		Tags: clusterTag(), Profile: c.profile("nodes"), Role: "nodes",
		Interfaces: []fakeaws.Interface{{Private: []netip.Addr{address}}},
	}
	for _, change := range changes {
		change(&instance)
	}
	m := &Machine{cluster: c, Address: instance.Interfaces[0].Private[0], Instance: c.Cloud.Launch(instance)}
	m.dir = filepath.Join(c.dir, m.Instance.ID)
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if m.Metadata, err = c.Cloud.Metadata(m.Instance.ID); err != nil {
		return nil, err
	}
	var ends []string
	for _, replica := range c.Replicas {
		ends = append(ends, replica.Address)
	}
	if m.proxy, err = faultproxy.ListenFrom(m.Address.String(), ends...); err != nil {
		return nil, err
	}
	c.machines = append(c.machines, m)
	return m, nil
}

// NodeName returns the expected name of the node.
func (m *Machine) NodeName() string { return m.Instance.PrivateDNSName }

// EntryName returns the name of its ledger entry.
func (m *Machine) EntryName() string { return "aws-" + m.Instance.ID }

// Kubeconfig is the path of the bootstrap kubeconfig that the client writes.
func (m *Machine) Kubeconfig() string { return filepath.Join(m.dir, "bootstrap-kubeconfig") }

// ServiceURL returns the URL of the service for the machine.
func (m *Machine) ServiceURL() string { return urlOf(m.proxy) }

func urlOf(p *faultproxy.Proxy) string {
	_, port, err := net.SplitHostPort(p.Address())
	if err != nil {
		panic(err)
	}
	return "https://localhost:" + port
}

// Outcome is the result of a run of the client.
type Outcome struct {
	// Status is its exit status.
	Status int
	// Output is its output.
	Output string
}

// Client runs "node-authorizer client" with the flags of the machine's unit and
// additional ones.
func (m *Machine) Client(ctx context.Context, flags ...string) (Outcome, error) {
	arguments := []string{
		"client", "--authorizer=aws",
		"--node-url=" + m.ServiceURL(),
		"--kubeapi-url=" + m.cluster.Server(),
		"--kubeconfig=" + m.Kubeconfig(),
		"--tls-client-ca=" + m.cluster.CAFile(),
		"--interval=500ms",
	}
	return m.Run(ctx, nil, append(arguments, flags...)...)
}

// Run runs node-authorizer on the machine.
func (m *Machine) Run(ctx context.Context, env []string, arguments ...string) (Outcome, error) {
	command := exec.CommandContext(ctx, m.cluster.Program, arguments...)
	command.Env = append(environment(m.Metadata), env...)
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return Outcome{}, err
	}
	return Outcome{Status: command.ProcessState.ExitCode(), Output: strings.TrimSpace(string(output))}, nil
}

// Boot runs the client and then the kubelet, and returns when the node is ready and has
// its addresses.
func (m *Machine) Boot(ctx context.Context) error {
	outcome, err := m.Client(ctx)
	if err != nil {
		return err
	}
	if outcome.Status != 0 {
		return fmt.Errorf("machine %s: the client ended with status %d: %s", m.Instance.ID, outcome.Status, outcome.Output)
	}
	return m.StartKubelet(ctx)
}

// StartKubelet starts the kubelet from the bootstrap kubeconfig.
func (m *Machine) StartKubelet(ctx context.Context) error {
	var err error
	m.Node, err = m.cluster.AddNode(ctx, m.NodeName(), localplane.NodeOptions{
		BootstrapKubeconfig: m.Kubeconfig(),
		Machine: &localplane.MachineOptions{
			Address:    m.Address.String(),
			ProviderID: "aws:///" + m.Instance.Zone + "/" + m.Instance.ID,
		},
	})
	if err != nil {
		return err
	}
	return m.Node.SetAddresses(ctx,
		corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: m.Address.String()},
		corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: m.NodeName()},
		corev1.NodeAddress{Type: corev1.NodeHostName, Address: m.NodeName()})
}

// Evidence returns the request body of the machine's client, in the format of the
// original node-authorizer.
func (m *Machine) Evidence(ctx context.Context) ([]byte, error) {
	body, err := m.form(ctx, "rsa2048")
	if err != nil {
		return nil, err
	}
	return Body(map[string]string{"Document": encode(body)}), nil
}

// form returns one of the forms of the identity document: document, pkcs7, rsa2048 or
// signature.
func (m *Machine) form(ctx context.Context, name string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, m.Metadata.URL+"/latest/api/token", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-aws-ec2-metadata-token-ttl-seconds", "60")
	token, err := read(request)
	if err != nil {
		return nil, err
	}
	request, err = http.NewRequestWithContext(ctx, http.MethodGet, m.Metadata.URL+"/latest/dynamic/instance-identity/"+name, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-aws-ec2-metadata-token", string(token))
	return read(request)
}

func read(request *http.Request) ([]byte, error) {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", request.URL, response.Status)
	}
	return body, err
}

// Answer is an answer of the service.
type Answer server.Answer

// Ask sends a body to a replica for a node name, from the machine's address, over a new
// connection.
func (m *Machine) Ask(ctx context.Context, replica *Replica, name string, body []byte) (Answer, error) {
	roots, err := server.Roots(m.cluster.CAFile())
	if err != nil {
		return Answer{}, err
	}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true, DialContext: dialerFrom(m.Address.String()).DialContext,
	}}
	answer, err := server.Post(ctx, client, "https://"+replica.Address+"/authorize/"+name, "", body)
	return Answer(answer), err
}

// Ready returns nil when the machine's node is ready.
func (m *Machine) Ready(ctx context.Context) error {
	node, err := m.cluster.Client.CoreV1().Nodes().Get(ctx, m.NodeName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("node %s is not ready", node.Name)
}

func dialerFrom(address string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
}
