package authentication

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// Node is an instance with a kubelet whose kubeconfig runs `node-authorizer token`.
type Node struct {
	*localplane.Node
	Instance fakeaws.Instance
	Address  netip.Addr

	cluster *Cluster
}

// RoleARN is the ARN of a role in the cluster's account.
func RoleARN(role string) string {
	return "arn:aws:iam::" + fakeaws.DefaultAccount + ":role/" + role
}

// Launch starts an instance with a role. Its node has the name from EC2.
func (c *Cluster) Launch(role string) (fakeaws.Instance, netip.Addr) {
	c.nodes++
	address := netip.AddrFrom4([4]byte{127, 41, 0, byte(c.nodes)})
	return c.Cloud.Launch(fakeaws.Instance{
		Region: Region, Role: role, Profile: "arn:aws:iam::" + fakeaws.DefaultAccount + ":instance-profile/" + role,
		Interfaces: []fakeaws.Interface{{Private: []netip.Addr{address}}},
	}), address
}

// Boot launches an instance with a role, and starts its kubelet. It does not wait until
// the node is Ready, because some nodes must not become Ready.
func (c *Cluster) Boot(ctx context.Context, role string) (*Node, error) {
	instance, address := c.Launch(role)
	metadata, err := c.Cloud.Metadata(instance.ID)
	if err != nil {
		return nil, err
	}
	node, err := c.AddNode(ctx, instance.PrivateDNSName, localplane.NodeOptions{
		Credential: c.execCredential(metadata),
		Machine:    &localplane.MachineOptions{Address: address.String(), ProviderID: "aws:///" + instance.Zone + "/" + instance.ID},
		NoWait:     true,
	})
	if err != nil {
		return nil, err
	}
	return &Node{Node: node, Instance: instance, Address: address, cluster: c}, nil
}

// execCredential is the user of the kubeconfig of an instance: a command that makes
// tokens with the credentials of the metadata service.
func (c *Cluster) execCredential(metadata *fakeaws.Metadata) *clientcmdapi.AuthInfo {
	exec := &clientcmdapi.ExecConfig{
		Command:         c.Program,
		Args:            []string{"token", "--cluster-id", ClusterID, "--region", Region},
		APIVersion:      "client.authentication.k8s.io/v1",
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}
	for _, variable := range metadata.Environment() {
		// The token is a request to STS under its own name.
		if name, value, _ := strings.Cut(variable, "="); name == "AWS_EC2_METADATA_SERVICE_ENDPOINT" {
			exec.Env = append(exec.Env, clientcmdapi.ExecEnvVar{Name: name, Value: value})
		}
	}
	return &clientcmdapi.AuthInfo{Exec: exec}
}

// Initialize does what a cloud controller does after a node has registered.
func (n *Node) Initialize(ctx context.Context) error {
	err := await.Until(ctx, n.Name()+" registers", func(ctx context.Context) error {
		_, err := n.cluster.Client.CoreV1().Nodes().Get(ctx, n.Name(), metav1.GetOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return n.SetAddresses(ctx,
		corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: n.Address.String()},
		corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: n.Name()},
		corev1.NodeAddress{Type: corev1.NodeHostName, Address: n.Name()})
}

// IsReady returns nil if the node is Ready.
func (n *Node) IsReady(ctx context.Context) error {
	object, err := n.cluster.Client.CoreV1().Nodes().Get(ctx, n.Name(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range object.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			if condition.Status == corev1.ConditionTrue {
				return nil
			}
			return fmt.Errorf("its condition Ready is %s: %s", condition.Status, condition.Message)
		}
	}
	return fmt.Errorf("%s has no condition Ready", n.Name())
}

// Log returns the log of the kubelet.
func (n *Node) Log() (string, error) {
	text, err := os.ReadFile(n.LogFile())
	return string(text), err
}

// commonName returns the common name in a PKCS #10 request in PEM.
func commonName(request []byte) (string, error) {
	block, _ := pem.Decode(request)
	if block == nil {
		return "", errors.New("the request is not PEM")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return "", err
	}
	return parsed.Subject.CommonName, nil
}
